import Support

/// The memory held for each client, and in total: one account for request bodies, responses, events, pages and
/// everything else that a client can make the server hold, because separate limits for each kind would add up to
/// gigabytes.
///
/// A reservation is made before the memory is allocated, grows with it, and ends with its last reference. A reservation
/// beyond a client's share, or beyond what is left for all, is refused. Usable from any thread; its lock is always the
/// innermost, and nothing is called under it.
package final class MemoryLedger: Sendable {
  /// The number of bytes that a connection or a stream may hold without a reservation: the number of connections and
  /// streams is bounded, and small requests should not contend for a lock.
  package static let uncountedBytes = 4096

  private struct Accounts {
    var total = 0
    var byUse = [Int](repeating: 0, count: MemoryUse.allCases.count)
    var byClient: [ClientAddress: Int] = [:]
    var limit: ShareLimit
    var refusals = [Int](repeating: 0, count: MemoryRefusal.allCases.count)

    func refusal(of bytes: Int, held: Int) -> MemoryRefusal? {
      switch limit.refusal(of: bytes, held: held, total: total) {
      case .perClient: .clientShare
      case .total: .total
      case nil: nil
      }
    }
  }

  private let accounts: Locked<Accounts>

  /// Creates an empty ledger: all clients together may hold `limit` bytes, each of them `clientLimit`, and less the
  /// more the others hold.
  package init(limit: Int, clientLimit: Int) {
    accounts = Locked(Accounts(limit: ShareLimit(total: limit, perClient: clientLimit)))
  }

  /// The number of reserved bytes.
  package var total: Int { accounts.withLock { $0.total } }

  /// The maximum number of bytes that all clients together may hold.
  package var limit: Int { accounts.withLock { $0.limit.total } }

  /// The maximum number of bytes that one client may hold.
  package var clientLimit: Int { accounts.withLock { $0.limit.perClient } }

  /// Sets both limits. Lowering them does not affect existing reservations.
  func setLimits(_ limit: Int, client clientLimit: Int) {
    accounts.withLock { $0.limit = ShareLimit(total: limit, perClient: clientLimit) }
  }

  /// Returns the number of bytes reserved for a use.
  package func bytes(for use: MemoryUse) -> Int { accounts.withLock { $0.byUse[use.index] } }

  /// Returns the number of bytes reserved for a client.
  package func bytes(of client: ClientAddress) -> Int { accounts.withLock { $0.byClient[client] ?? 0 } }

  /// Returns the number of reservations that were refused for this reason.
  package func refusals(for reason: MemoryRefusal) -> Int { accounts.withLock { $0.refusals[reason.index] } }

  /// Reserves bytes until the reservation is released. Throws if they would exceed the client's share or the total.
  package func reserve(
    _ bytes: Int, for client: ClientAddress, _ use: MemoryUse
  ) throws(MemoryRefusal) -> MemoryReservation {
    let reservation = MemoryReservation(ledger: self, client: client, use: use)
    try reservation.resize(to: bytes)
    return reservation
  }

  /// Adds bytes to a client's account, or subtracts them. Throws if an increase is refused, in which case nothing is
  /// counted.
  fileprivate func change(by bytes: Int, of client: ClientAddress, _ use: MemoryUse) throws(MemoryRefusal) {
    let refusal = accounts.withLock { accounts -> MemoryRefusal? in
      let held = accounts.byClient[client] ?? 0
      if bytes > 0, let refusal = accounts.refusal(of: bytes, held: held) {
        accounts.refusals[refusal.index] += 1
        return refusal
      }
      accounts.total += bytes
      accounts.byUse[use.index] += bytes
      accounts.byClient[client] = held + bytes == 0 ? nil : held + bytes
      return nil
    }
    if let refusal { throw refusal }
  }
}

extension CaseIterable where Self: Equatable, AllCases.Index == Int {
  fileprivate var index: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// Bytes that a client was granted, returned with the last reference.
package final class MemoryReservation: Sendable {
  private let ledger: MemoryLedger
  private let client: ClientAddress
  private let use: MemoryUse
  private let count = Locked(0)

  fileprivate init(ledger: MemoryLedger, client: ClientAddress, use: MemoryUse) {
    self.ledger = ledger
    self.client = client
    self.use = use
  }

  deinit {
    // A decrease is never refused.
    try? ledger.change(by: -count.withLock { $0 }, of: client, use)
  }

  /// The number of reserved bytes.
  package var byteCount: Int { count.withLock { $0 } }

  /// Changes the number of bytes. An increase may be refused; the reservation is then unchanged.
  package func resize(to bytes: Int) throws(MemoryRefusal) {
    try count.withLock { count throws(MemoryRefusal) in
      try ledger.change(by: bytes - count, of: client, use)
      count = bytes
    }
  }
}

/// The purpose for which memory is held on behalf of a client.
package enum MemoryUse: String, CaseIterable, Sendable {
  /// Request bodies that are arriving, or waiting to be handled.
  case requestBodies = "request_bodies"
  /// Encoded responses that wait for their client to read them.
  case responses
  /// Events that wait for a subscriber to read them.
  case pendingEvents = "pending_events"
  /// First events and missed events that are prepared for a stream that opens.
  case replays
  /// Streams with their cells and contexts.
  case streams
  /// Fetches that are kept for their next pages.
  case pages
  /// Requests with an `Idempotency-Key`, and their responses.
  case idempotency
}

/// The reason why a client gets no more memory.
package enum MemoryRefusal: String, Error, CaseIterable, Sendable {
  /// The client holds its share: `memory.clientBytes`.
  case clientShare = "client"
  /// All clients together hold the available memory: `memory.bytes`.
  case total
}
