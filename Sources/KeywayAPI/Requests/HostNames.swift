/// The names under which the server answers.
///
/// A page of another origin can make a name of its own point to a loopback address (DNS rebinding) and then talk to us
/// as if it were ours; its requests still carry that name as `Host`, so a name that we do not know is refused.
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
      guard name[name.index(after: colon)...].utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return false }
      name = name[..<colon]
    }
    return names.contains(String(name)) || names.contains(name.lowercased())
  }
}
