/// The address of another node: `http://host:port`, `https://host:port`, or `unix:` and the path of its socket.
package struct NodeAddress: Hashable, Sendable, CustomStringConvertible {
  enum Place: Hashable, Sendable {
    case host(String, port: String)
    case socket(path: String)
  }

  let place: Place
  /// True for `https`: the node is reached through whatever ends TLS in front of it.
  let isSecure: Bool
  /// What `Host` says of it (RFC 9110 §7.2).
  let authority: String
  /// As it was written.
  package let description: String

  /// The address that a text is; throws a fault that says what is wrong with it.
  package init(_ text: String) throws(NodeFault) {
    description = text
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      guard !path.isEmpty, path.utf8.count < 108 else {
        throw NodeFault("'\(text)' is no node: a socket's path has 1 to 107 bytes", isUnsent: true)
      }
      place = .socket(path: path)
      isSecure = false
      authority = "localhost"
      return
    }
    guard let scheme = ["http://", "https://"].first(where: { text.hasPrefix($0) }) else {
      throw NodeFault(
        "'\(text)' is not the address of a node: http://host:port, https://host:port, or unix:/path/of/a/socket",
        isUnsent: true)
    }
    isSecure = scheme == "https://"
    var rest = text.dropFirst(scheme.count)
    if rest.hasSuffix("/") { rest.removeLast() }
    let end = rest.hasPrefix("[") ? rest.firstIndex(of: "]").map { rest.index(after: $0) } : rest.firstIndex(of: ":")
    let host = rest[..<(end ?? rest.endIndex)]
    let tail = rest[(end ?? rest.endIndex)...]
    let port = tail.isEmpty ? (isSecure ? "443" : "80") : String(tail.dropFirst())
    guard !host.isEmpty, !host.contains(where: { "/?#@ ".contains($0) }), tail.isEmpty || tail.hasPrefix(":"),
      host.hasPrefix("[") == host.hasSuffix("]"), port.allSatisfy({ $0.isASCII && $0.isNumber }),
      let number = UInt16(port), number > 0
    else {
      throw NodeFault("'\(text)' is not the address of a node: \(scheme)host:port without a path", isUnsent: true)
    }
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    place = .host(String(isBracketed ? host.dropFirst().dropLast() : host), port: port)
    authority = String(rest)
  }
}
