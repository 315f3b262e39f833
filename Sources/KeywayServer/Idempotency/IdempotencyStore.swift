package import HTTPServer
import HTTPTypes
import Store
import Support

/// The memory of idempotency keys, behind a lock, with a clock, and charged to the clients in the ledger.
///
/// `contents` is all that changes. Its lock is held for a look-up or a change of the tables, never while a request is
/// carried out; the ledger's is taken inside it, and no other.
package final class IdempotencyStore: Sendable {
  fileprivate struct Contents {
    var memory: IdempotencyMemory
    /// What the clients hold, by the ledger.
    var reservations: [ClientAddress: MemoryReservation] = [:]
  }

  private let contents: Locked<Contents>
  private let ledger: MemoryLedger
  private let now: @Sendable () -> UInt64

  /// A store without keys. `now` gives seconds that only grow.
  package init(limits: IdempotencyMemory.Limits, ledger: MemoryLedger, now: @escaping @Sendable () -> UInt64) {
    contents = Locked(Contents(memory: IdempotencyMemory(limits: limits)))
    self.ledger = ledger
    self.now = now
  }

  /// How many keys are remembered, and the bytes of them.
  var counts: (keys: Int, bytes: Int) { contents.withLock { ($0.memory.keyCount, $0.memory.byteCount) } }

  /// What to do with a request of a client, which has a body of so many bytes. The clock is read under the lock, so
  /// that it never seems to go back.
  func begin(
    _ request: IdempotentRequest, from client: ClientAddress, bodyBytes: Int
  ) -> IdempotencyMemory.Finding {
    contents.withLock { [now, ledger] contents in
      let finding = contents.memory.begin(request, from: client, bodyBytes: bodyBytes, at: now())
      contents.relieve(ledger)
      guard case .first = finding else { return finding }
      do throws(MemoryRefusal) {
        try contents.charge(client, ledger)
        return .first
      } catch {
        contents.memory.abandon(request.key, at: now())
        contents.relieve(ledger)
        return error == .clientShare ? .shareFull : .full
      }
    }
  }

  /// The request of a client's key has its response: a success is remembered, and anything else, which changed nothing,
  /// is not.
  func end(_ key: IdempotencyKey, of client: ClientAddress, with response: Response) {
    contents.withLock { [now, ledger] contents in
      guard response.status.kind == .successful else {
        contents.abandon(key, at: now(), ledger)
        return
      }
      contents.memory.keep(response, for: key, at: now())
      do throws(MemoryRefusal) {
        try contents.charge(client, ledger)
      } catch {
        contents.memory.dropBody(of: key)
        // What is left fits in the room that was held for it.
        try? contents.charge(client, ledger)
      }
      contents.relieve(ledger)
    }
  }

  /// The request of a key was refused.
  func abandon(_ key: IdempotencyKey) {
    contents.withLock { [now, ledger] in $0.abandon(key, at: now(), ledger) }
  }

  /// What another node has answered to a request that is under way here; nil where it has not.
  func precedent(of request: IdempotentRequest) -> Response? {
    contents.withLock { $0.memory.precedent(of: request) }
  }

  /// Remembers responses that were kept with commits, oldest first; `present` is in milliseconds since 1970. They are
  /// charged to `ClientAddress.unknown`, and where the ledger has no room for them they are remembered all the same.
  func restore(_ attachments: [StoredAttachment], at present: Int64) {
    contents.withLock { [now, ledger] contents in
      for attachment in attachments where PassedAttachment.mayHaveKey(attachment.bytes) {
        // Of clocks that say anything: what was written in the future has no age, and what is older than can be counted
        // is too old.
        let (age, isTooOld) = present.subtractingReportingOverflow(attachment.milliseconds)
        guard !isTooOld || present < attachment.milliseconds,
          let stored = StoredResponse(PassedAttachment.rest(of: attachment.bytes)), let request = stored.request
        else { continue }
        contents.memory.restore(
          stored.response, for: request,
          age: isTooOld ? 0 : UInt64(max(0, age)) / 1000, at: now())
      }
      try? contents.charge(.unknown, ledger)
    }
  }

  /// The responses that are remembered of commits up to one, oldest first, as they are kept with commits; `present` is
  /// in milliseconds since 1970.
  func kept(upTo last: Cursor, at present: Int64) -> [StoredAttachment] {
    let remembered = contents.withLock { [now] in $0.memory.remembered(at: now()) }
    return remembered.compactMap { request, response, age in
      guard let cursor = response.fields[.keywayCursor].flatMap({ Cursor($0) }), cursor.epoch == last.epoch,
        cursor.revision <= last.revision
      else { return nil }
      return StoredAttachment(
        revision: cursor.revision, milliseconds: present - Int64(age) * 1000,
        bytes: StoredResponse(request: request, response: response).bytes)
    }
  }

  /// Forgets what is too old, also when no request comes.
  func sweep() {
    contents.withLock { [now, ledger] contents in
      contents.memory.forgetExpired(at: now())
      contents.relieve(ledger)
    }
  }
}

extension IdempotencyStore.Contents {
  /// Has the ledger say of a client what the memory says.
  fileprivate mutating func charge(_ client: ClientAddress, _ ledger: MemoryLedger) throws(MemoryRefusal) {
    let bytes = memory.byteCount(of: client) + (client == .unknown ? memory.restoredByteCount : 0)
    if let reservation = reservations[client] {
      try reservation.resize(to: bytes)
      if bytes == 0 { reservations[client] = nil }
    } else if bytes > 0 {
      reservations[client] = try ledger.reserve(bytes, for: client, .idempotency)
    }
  }

  /// Gives back what became free.
  fileprivate mutating func relieve(_ ledger: MemoryLedger) {
    for client in memory.takeRelieved() { try? charge(client, ledger) }
  }

  fileprivate mutating func abandon(_ key: IdempotencyKey, at now: UInt64, _ ledger: MemoryLedger) {
    memory.abandon(key, at: now)
    // What another node has answered is remembered in its place.
    try? charge(.unknown, ledger)
    relieve(ledger)
  }
}
