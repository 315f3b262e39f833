import Glibc

/// Why a server or a hub did not start.
package enum HTTPServerError: Error, Equatable, CustomStringConvertible {
  /// The host is neither an address nor a name that leads to one; the text is the resolver's.
  case unknownHost(String, reason: String)
  /// Binding or listening failed with this `errno`.
  case cannotListen(host: String, port: UInt16, errno: Int32)
  /// A socket of this machine could not be made, for this reason.
  case cannotListenAt(path: String, reason: String)
  /// A text names no proxy.
  case noProxy(String)
  /// Memory, threads or descriptors ran out.
  case outOfResources

  /// The program was linked so that libmicrohttpd's calls go past it, and requests would not be read strictly.
  case readsUnchecked

  /// For the operator.
  package var description: String {
    switch self {
    case .unknownHost(let host, let reason): "cannot resolve \(host): \(reason)"
    case .cannotListen(let host, let port, let errno):
      "cannot listen on \(host) port \(port): \(String(cString: strerror(errno)))"
    case .cannotListenAt(let path, let reason): "cannot listen on '\(path)': \(reason)"
    case .noProxy(let text):
      "access.proxies: '\(text)' is no address, no range such as 10.0.0.0/8, and not unix"
    case .readsUnchecked: "the program was linked wrongly: it must define recv for libmicrohttpd"
    case .outOfResources: "no memory, threads or descriptors left to start"
    }
  }
}
