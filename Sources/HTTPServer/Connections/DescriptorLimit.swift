import Glibc
import Logging

/// The process's limit of open descriptors.
enum DescriptorLimit {
  /// What files, epoll sets and a moment's duplicates may take beside the connections.
  private static let reserve = 256

  /// Raises the soft limit to the hard one, and gives how many of the wanted connections fit under it.
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
