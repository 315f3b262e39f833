import Locking

/// Counts the open TCP connections, in all and for each client address, event streams included, and knows what each
/// address moves on them.
final class ConnectionLimiter: Sendable {
  private struct Account {
    var count = 0
    let traffic: TrafficShare
  }

  private struct Counts {
    var total = 0
    var byAddress: [ClientAddress: Account] = [:]
  }

  private let counts = Locked(Counts())
  private let limit: Int
  private let limitPerAddress: Int
  private let reserve: Int
  private let bytesPerSecond: Int

  /// Bounds of a server. The reserve is at most an eighth of all connections.
  init(_ limits: ServerLimits) {
    limit = limits.connections
    limitPerAddress = limits.connectionsPerAddress
    bytesPerSecond = limits.bytesPerSecond
    reserve = min(limits.reservedConnections, limit / 8)
  }

  var count: Int { counts.withLock { $0.total } }

  /// Whether one more connection from the address may be accepted. The last places are for addresses that have few: so
  /// one that takes all it can get leaves room for others, and for whatever looks after the server.
  func hasRoom(for address: ClientAddress) -> Bool {
    counts.withLock { counts in
      let count = counts.byAddress[address]?.count ?? 0
      guard counts.total < limit, count < limitPerAddress else { return false }
      return counts.total < limit - reserve || count < reserve
    }
  }

  /// Counts a connection until the slot is released. Threads that accept at the same moment may pass the limit by
  /// one each.
  func admit(_ address: ClientAddress) -> ConnectionSlot {
    let traffic = counts.withLock { counts in
      counts.total += 1
      var account = counts.byAddress[address] ?? Account(traffic: TrafficShare(bytesPerSecond: bytesPerSecond))
      account.count += 1
      counts.byAddress[address] = account
      return account.traffic
    }
    return ConnectionSlot(limiter: self, address: address, traffic: traffic)
  }

  func leave(_ address: ClientAddress) {
    counts.withLock { counts in
      counts.total -= 1
      guard var account = counts.byAddress[address] else { return }
      account.count -= 1
      counts.byAddress[address] = account.count > 0 ? account : nil
      if counts.byAddress.capacity > 4 * counts.byAddress.count + 64 {
        counts.byAddress = Dictionary(uniqueKeysWithValues: counts.byAddress.map { ($0.key, $0.value) })
      }
    }
  }
}
