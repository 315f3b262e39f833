import Locking

/// Counts the open TCP connections, in all and for each client address, event streams included, and knows what each
/// address moves on them.
final class ConnectionLimiter: Sendable {
  private struct Account {
    var count = 0
    let traffic: TrafficShare
    let time: TrafficShare
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
  private let nanosecondsPerSecond: Int
  private let isProxy: @Sendable (ClientAddress) -> Bool

  /// Bounds of a server. The reserve is at most an eighth of all connections. A proxy has the whole time of the
  /// connection threads, as it stands for many.
  init(_ limits: ServerLimits, isProxy: @escaping @Sendable (ClientAddress) -> Bool = { _ in false }) {
    limit = limits.connections
    limitPerAddress = limits.connectionsPerAddress
    bytesPerSecond = limits.bytesPerSecond
    nanosecondsPerSecond = limits.serverThreadCount * 10_000_000 * limits.timePercent
    self.isProxy = isProxy
    reserve = min(limits.reservedConnections, limit / 8)
  }

  var count: Int { counts.withLock { $0.total } }

  /// Takes a place for a connection from the address, until the slot is released; nil where there is none. The last
  /// places are for addresses that have few: so one that takes all it can get leaves room for others, and for whatever
  /// looks after the server.
  func admit(_ address: ClientAddress) -> ConnectionSlot? {
    let account = counts.withLock { counts -> Account? in
      let count = counts.byAddress[address]?.count ?? 0
      guard counts.total < limit, count < limitPerAddress, counts.total < limit - reserve || count < reserve else {
        return nil
      }
      counts.total += 1
      var account = counts.byAddress[address] ?? makeAccount(of: address)
      account.count += 1
      counts.byAddress[address] = account
      return account
    }
    return account.map { ConnectionSlot(limiter: self, address: address, traffic: $0.traffic, time: $0.time) }
  }

  private func makeAccount(of address: ClientAddress) -> Account {
    Account(
      traffic: TrafficShare(bytesPerSecond: bytesPerSecond),
      time: TrafficShare(nanosecondsPerSecond: isProxy(address) ? .max : nanosecondsPerSecond))
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
