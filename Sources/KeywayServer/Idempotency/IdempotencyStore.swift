package import HTTPServer
import HTTPTypes
import Store
import Support

/// The memory of idempotency keys, behind a lock, with a clock, and charged to the clients in the ledger.
///
/// `contents` is the only mutable state. Its lock is held for a lookup or a change of the tables, never while a request
/// is carried out; the ledger's lock is taken inside it, and no other.
package final class IdempotencyStore: Sendable {
  fileprivate struct Contents {
    var memory: IdempotencyMemory
    /// The memory that is reserved for each client in the ledger.
    var reservations: [ClientAddress: MemoryReservation] = [:]
  }

  private let contents: Locked<Contents>
  private let ledger: MemoryLedger
  private let now: @Sendable () -> UInt64

  /// Creates a store without keys. `now` returns seconds of a monotonic clock.
  package init(limits: IdempotencyMemory.Limits, ledger: MemoryLedger, now: @escaping @Sendable () -> UInt64) {
    contents = Locked(Contents(memory: IdempotencyMemory(limits: limits)))
    self.ledger = ledger
    self.now = now
  }

  /// The number of keys that are remembered, and their size in bytes.
  var counts: (keys: Int, bytes: Int) { contents.withLock { ($0.memory.keyCount, $0.memory.byteCount) } }

  /// Begins a request of a client with a body of `bodyBytes` bytes, and returns what to do with it. The clock is read
  /// under the lock, so that it never seems to go back.
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

  /// Ends the request of a client's key with its response: a success is remembered, and any other response, whose
  /// request changed nothing, is not.
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
        // The rest fits in the room that was reserved for it.
        try? contents.charge(client, ledger)
      }
      contents.relieve(ledger)
    }
  }

  /// Ends the request of a key that was refused.
  func abandon(_ key: IdempotencyKey) {
    contents.withLock { [now, ledger] in $0.abandon(key, at: now(), ledger) }
  }

  /// Returns the response of another node to a request that is under way here, or nil if there is none.
  func precedent(of request: IdempotentRequest) -> Response? {
    contents.withLock { $0.memory.precedent(of: request) }
  }

  /// Remembers responses that were stored with commits, oldest first; `present` is in milliseconds since 1970. They are
  /// charged to `ClientAddress.unknown`, and are remembered even if the ledger has no room for them.
  func restore(_ attachments: [StoredAttachment], at present: Int64) {
    contents.withLock { [now, ledger] contents in
      for attachment in attachments where PassedAttachment.mayHaveKey(attachment.bytes) {
        // Clocks may be wrong: a response from the future has the age 0, and one whose age is too large for a number is
        // too old.
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

  /// Returns the remembered responses of commits up to one, oldest first, in the form in which they are stored with
  /// commits; `present` is in milliseconds since 1970.
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

  /// Forgets the responses that are too old, even if no request comes.
  func sweep() {
    contents.withLock { [now, ledger] contents in
      contents.memory.forgetExpired(at: now())
      contents.relieve(ledger)
    }
  }
}

extension IdempotencyStore.Contents {
  /// Reserves in the ledger what the memory holds for a client.
  fileprivate mutating func charge(_ client: ClientAddress, _ ledger: MemoryLedger) throws(MemoryRefusal) {
    let bytes = memory.byteCount(of: client) + (client == .unknown ? memory.restoredByteCount : 0)
    if let reservation = reservations[client] {
      try reservation.resize(to: bytes)
      if bytes == 0 { reservations[client] = nil }
    } else if bytes > 0 {
      reservations[client] = try ledger.reserve(bytes, for: client, .idempotency)
    }
  }

  /// Releases in the ledger what became free.
  fileprivate mutating func relieve(_ ledger: MemoryLedger) {
    for client in memory.takeRelieved() { try? charge(client, ledger) }
  }

  fileprivate mutating func abandon(_ key: IdempotencyKey, at now: UInt64, _ ledger: MemoryLedger) {
    memory.abandon(key, at: now)
    // The response of another node is remembered in its place.
    try? charge(.unknown, ledger)
    relieve(ledger)
  }
}
