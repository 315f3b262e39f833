/// The names under which the server answers.
///
/// A page of another origin can make its own name point to a loopback address (DNS rebinding), and then reach this
/// server as if the page came from it. Its requests still carry that name as `Host`, so an unknown name is refused.
package struct HostNames: Sendable {
  private let names: Set<String>

  /// The loopback names, the address that the server is bound to, and what the operator adds. `port` only makes the
  /// usual case quick to recognise.
  package init(host: String, others: [String], port: UInt16) {
    var names: Set<String> = ["localhost", "127.0.0.1", "[::1]"]
    for name in [host] + others where !name.isEmpty {
      names.insert(name.lowercased())
      if name.contains(":"), !name.hasPrefix("[") { names.insert("[\(name.lowercased())]") }
    }
    self.names = names.union(names.map { "\($0):\(port)" })
  }

  /// Whether a `Host` header, with or without a port, is one of the names.
  package func contains(_ host: String) -> Bool {
    if names.contains(host) { return true }
    var name = host[...]
    if let colon = name.lastIndex(of: ":"), !name.hasSuffix("]") {
      let port = name[name.index(after: colon)...]
      guard port.isEmpty || port.isDecimal else { return false }
      name = name[..<colon]
    }
    return names.contains(String(name)) || names.contains(name.lowercased())
  }
}
