import Support

/// How much memory is held for each client, and in all: one account for request bodies, responses, events, pages and
/// whatever else a client can make the server hold, because limits that each bound one sort are gigabytes together.
///
/// A reservation is made before the memory is taken, grows with it, and ends with its last owner. What is over a
/// client's share, or over what is left for all, is refused to the one who asks. Usable from any thread; its lock is
/// taken inside every other, and nothing is called under it.
package final class MemoryLedger: Sendable {
  /// What a connection or a stream may hold without an account of it: the number of those is bounded, and small
  /// requests should not meet at a lock.
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

  /// A ledger of nothing: all clients together may hold `limit` bytes, each of them `clientLimit`, and less the more
  /// the others hold.
  package init(limit: Int, clientLimit: Int) {
    accounts = Locked(Accounts(limit: ShareLimit(total: limit, perClient: clientLimit)))
  }

  /// How many bytes are reserved.
  package var total: Int { accounts.withLock { $0.total } }

  /// How many bytes all clients together may hold.
  package var limit: Int { accounts.withLock { $0.limit.total } }

  /// How many bytes one client may hold.
  package var clientLimit: Int { accounts.withLock { $0.limit.perClient } }

  /// Sets both limits. Lowering them takes nothing from those who have it.
  func setLimits(_ limit: Int, client clientLimit: Int) {
    accounts.withLock { $0.limit = ShareLimit(total: limit, perClient: clientLimit) }
  }

  /// How many bytes are reserved for a use.
  package func bytes(for use: MemoryUse) -> Int { accounts.withLock { $0.byUse[use.index] } }

  /// How many bytes are reserved for a client.
  package func bytes(of client: ClientAddress) -> Int { accounts.withLock { $0.byClient[client] ?? 0 } }

  /// How many requests for memory were refused for this reason.
  package func refusals(for reason: MemoryRefusal) -> Int { accounts.withLock { $0.refusals[reason.index] } }

  /// Reserves bytes until the reservation is let go. Throws where they would be over the client's share or the total.
  package func reserve(
    _ bytes: Int, for client: ClientAddress, _ use: MemoryUse
  ) throws(MemoryRefusal) -> MemoryReservation {
    let reservation = MemoryReservation(ledger: self, client: client, use: use)
    try reservation.resize(to: bytes)
    return reservation
  }

  /// Counts more or fewer bytes of a client. Throws where more are refused, and counts nothing then.
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

/// Bytes that a client was granted. They are given back when the last reference goes.
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
    // Less is never refused.
    try? ledger.change(by: -count.withLock { $0 }, of: client, use)
  }

  /// How many bytes are reserved.
  package var byteCount: Int { count.withLock { $0 } }

  /// Makes it more or fewer bytes. More may be refused; the reservation is then what it was.
  package func resize(to bytes: Int) throws(MemoryRefusal) {
    try count.withLock { count throws(MemoryRefusal) in
      try ledger.change(by: bytes - count, of: client, use)
      count = bytes
    }
  }
}

/// What memory is held for on behalf of a client.
package enum MemoryUse: String, CaseIterable, Sendable {
  /// Request bodies that arrive, and wait to be carried out.
  case requestBodies = "request_bodies"
  /// Responses that are encoded, and wait for their client to read them.
  case responses
  /// Events that wait for a subscriber to read them.
  case pendingEvents = "pending_events"
  /// First events and missed events that are put together for a stream that opens.
  case replays
  /// What streams, their cells and contexts are.
  case streams
  /// Fetches that are kept for their next pages.
  case pages
  /// Requests with an `Idempotency-Key`, and their responses.
  case idempotency
}

/// Why a client is given no more memory.
package enum MemoryRefusal: String, Error, CaseIterable, Sendable {
  /// It holds its share: `memory.clientBytes`.
  case clientShare = "client"
  /// All clients together hold what there is: `memory.bytes`.
  case total
}
