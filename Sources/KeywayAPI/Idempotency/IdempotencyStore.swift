import HTTPServer
import HTTPTypes
import Locking
import ModelStore

/// The memory of idempotency keys, behind a lock and with a clock.
///
/// `memory` is all that changes. Its lock is held for a look-up or a change of the tables, never while a request is
/// carried out and never with another lock.
package final class IdempotencyStore: Sendable {
  private let memory: Locked<IdempotencyMemory>
  private let now: @Sendable () -> UInt64

  /// A store without keys. `now` gives seconds that only grow.
  package init(limits: IdempotencyMemory.Limits, now: @escaping @Sendable () -> UInt64) {
    memory = Locked(IdempotencyMemory(limits: limits))
    self.now = now
  }

  /// How many keys are remembered, and the bytes of them.
  var counts: (keys: Int, bytes: Int) { memory.withLock { ($0.keyCount, $0.byteCount) } }

  /// What to do with a request. The clock is read under the lock, so that it never seems to go back.
  func begin(_ request: IdempotentRequest) -> IdempotencyMemory.Finding {
    memory.withLock { [now] in $0.begin(request.key, request.fingerprint, at: now()) }
  }

  /// The request of a key has its response: a success is remembered, and anything else, which changed nothing, is not.
  func end(_ key: IdempotencyKey, with response: Response) {
    memory.withLock { [now] memory in
      if response.status.kind == .successful {
        memory.keep(response, for: key, at: now())
      } else {
        memory.abandon(key)
      }
    }
  }

  /// Remembers the responses that were kept with commits, oldest first; `present` is in milliseconds since 1970.
  func restore(_ attachments: [StoredAttachment], at present: Int64) {
    memory.withLock { [now] memory in
      for attachment in attachments {
        guard let stored = StoredResponse(attachment.bytes) else { continue }
        let age = UInt64(max(0, present - attachment.milliseconds)) / 1000
        memory.restore(stored.response, for: stored.request.key, stored.request.fingerprint, age: age, at: now())
      }
    }
  }

  /// The request of a key was refused.
  func abandon(_ key: IdempotencyKey) {
    memory.withLock { $0.abandon(key) }
  }
}
