import Support

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
  private let limit: ShareLimit
  private let bytesPerSecond: Int
  private let nanosecondsPerSecond: Int
  private let ipv6PrefixBits: Int
  private let isProxy: @Sendable (ClientAddress) -> Bool

  /// Bounds of a server. The reserve is at most an eighth of all connections. A proxy has the whole time of the
  /// connection threads, as it stands for many.
  init(_ limits: ServerLimits, isProxy: @escaping @Sendable (ClientAddress) -> Bool = { _ in false }) {
    bytesPerSecond = limits.bytesPerSecond
    nanosecondsPerSecond = limits.serverThreadCount * 10_000_000 * limits.timePercent
    ipv6PrefixBits = limits.ipv6PrefixBits
    self.isProxy = isProxy
    limit = ShareLimit(
      total: limits.connections, perClient: limits.connectionsPerAddress,
      reserve: min(limits.reservedConnections, limits.connections / 8))
  }

  var count: Int { counts.withLock { $0.total } }

  /// Takes a place for a connection from the address, until the slot is released; nil where its share is used up. So an
  /// address that takes all it can get leaves room for others, and for whatever looks after the server.
  func admit(_ address: ClientAddress) -> ConnectionSlot? {
    let client = client(at: address)
    let account = counts.withLock { counts -> Account? in
      let count = counts.byAddress[client]?.count ?? 0
      guard limit.refusal(of: 1, held: count, total: counts.total) == nil else { return nil }
      counts.total += 1
      var account = counts.byAddress[client] ?? makeAccount(of: address)
      account.count += 1
      counts.byAddress[client] = account
      return account
    }
    return account.map {
      ConnectionSlot(limiter: self, address: address, client: client, traffic: $0.traffic, time: $0.time)
    }
  }

  /// Returns the client that is counted for an address: its network, or a proxy by itself.
  func client(at address: ClientAddress) -> ClientAddress {
    isProxy(address) ? address : address.network(prefixBits: ipv6PrefixBits)
  }

  private func makeAccount(of address: ClientAddress) -> Account {
    Account(
      traffic: TrafficShare(bytesPerSecond: bytesPerSecond),
      time: TrafficShare(nanosecondsPerSecond: isProxy(address) ? .max : nanosecondsPerSecond))
  }

  func leave(_ client: ClientAddress) {
    counts.withLock { counts in
      counts.total -= 1
      guard var account = counts.byAddress[client] else { return }
      account.count -= 1
      counts.byAddress[client] = account.count > 0 ? account : nil
      if counts.byAddress.capacity > 4 * counts.byAddress.count + 64 {
        counts.byAddress = Dictionary(uniqueKeysWithValues: counts.byAddress.map { ($0.key, $0.value) })
      }
    }
  }
}
