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

  /// How many bytes all clients together may hold. Lowering it takes nothing from those who have it.
  package var limit: Int {
    get { accounts.withLock { $0.limit.total } }
    set { accounts.withLock { $0.limit = ShareLimit(total: newValue, perClient: $0.limit.perClient) } }
  }

  /// How many bytes one client may hold. Lowering it takes nothing from those who have it.
  package var clientLimit: Int {
    get { accounts.withLock { $0.limit.perClient } }
    set { accounts.withLock { $0.limit = ShareLimit(total: $0.limit.total, perClient: newValue) } }
  }

  /// Sets both limits at once.
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

  func change(by bytes: Int, of client: ClientAddress, _ use: MemoryUse) throws(MemoryRefusal) {
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
