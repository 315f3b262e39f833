import Glibc
import Logging
import Support

/// Counts the open TCP connections, in total and for each client address, including event streams, and holds the
/// traffic shares of each address.
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

  /// Creates the limiter of a server. The reserve is an eighth of all connections. A proxy may use the whole time of
  /// the connection threads, since it stands for many clients.
  init(_ limits: ServerLimits, isProxy: @escaping @Sendable (ClientAddress) -> Bool = { _ in false }) {
    bytesPerSecond = limits.bytesPerSecond
    nanosecondsPerSecond = limits.threadCount * 10_000_000 * limits.timePercent
    ipv6PrefixBits = limits.ipv6PrefixBits
    self.isProxy = isProxy
    limit = ShareLimit(
      total: limits.connections, perClient: limits.connectionsPerAddress, reserve: limits.connections / 8)
  }

  var count: Int { counts.withLock { $0.total } }

  /// Takes a slot for a connection from the address until the slot is released; nil if its share is used up. So an
  /// address that takes all it can get leaves room for others, and for monitoring the server.
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

  /// Frees the slot of a connection.
  fileprivate func leave(_ client: ClientAddress) {
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

/// The slot of one TCP connection among those allowed. It passes from libmicrohttpd's connection to the event stream
/// that it becomes, and is freed with the last reference.
final class ConnectionSlot: Sendable {
  private let limiter: ConnectionLimiter
  /// The other side of the connection.
  let address: ClientAddress
  /// The client that the connection counts for.
  let client: ClientAddress
  /// A number that identifies the client.
  let clientNumber: Int
  /// The share of the bytes that all connections of the client transfer.
  let traffic: TrafficShare
  /// The share of the connection threads' time that they take.
  let time: TrafficShare

  fileprivate init(
    limiter: ConnectionLimiter, address: ClientAddress, client: ClientAddress, traffic: TrafficShare,
    time: TrafficShare
  ) {
    self.limiter = limiter
    self.address = address
    self.client = client
    clientNumber = client.hashValue
    self.traffic = traffic
    self.time = time
  }

  deinit {
    limiter.leave(client)
  }
}

/// The process's limit of open descriptors.
enum DescriptorLimit {
  /// The number of descriptors reserved for files, epoll sets and temporary duplicates, beside the connections.
  private static let reserve = 256

  /// Raises the soft limit to the hard one, and returns how many of the wanted connections fit within it.
  static func raise(for connections: Int, logger: Logger) -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return connections }
    if limit.rlim_cur < limit.rlim_max {
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
    let possible = max(16, Int(clamping: limit.rlim_cur) - reserve)
    guard possible < connections else { return connections }
    logger.warning("descriptors allow \(possible) connections of the configured \(connections)")
    return possible
  }
}
