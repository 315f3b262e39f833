import Glibc

/// Why a server or a hub did not start.
package enum HTTPServerError: Error, Equatable, CustomStringConvertible {
  /// The host is neither an address nor a name that leads to one; the text is the resolver's.
  case unknownHost(String, reason: String)
  /// Binding or listening failed with this `errno`.
  case cannotListen(host: String, port: UInt16, errno: Int32)
  /// Memory, threads or descriptors ran out.
  case outOfResources

  /// For the operator.
  package var description: String {
    switch self {
    case .unknownHost(let host, let reason): "cannot resolve \(host): \(reason)"
    case .cannotListen(let host, let port, let errno):
      "cannot listen on \(host) port \(port): \(String(cString: strerror(errno)))"
    case .outOfResources: "no memory, threads or descriptors left to start"
    }
  }
}
