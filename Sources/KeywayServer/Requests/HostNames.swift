package import HTTPServer

/// The host names that the server accepts.
///
/// A page of another origin can make its own host name resolve to a loopback address (DNS rebinding), and then reach
/// this server as if the page came from it. Its requests still carry that name as `Host`, so an unknown name is
/// refused.
package struct HostNames: Sendable {
  private static let loopback: Set<String> = ["localhost", "127.0.0.1", "[::1]"]

  private let names: Set<String>
  /// The accepted suffixes, each with its leading dot: for `*.example.org`, `.example.org`.
  private let suffixes: [String]

  /// Creates the names: the loopback names, the address that the server is bound to, unless it is a socket file, and
  /// the names that the operator adds. `port` only speeds up the usual case. Throws an `AccessError` for a name that no
  /// `Host` can have.
  package init(host: String, others: [String], port: UInt16) throws(AccessError) {
    var names = Self.loopback
    var suffixes: [String] = []
    for name in others {
      let lowercase = name.lowercased()
      guard Self.isName(lowercase) else {
        throw AccessError(
          "names: '\(name)' matches no Host: use a host without a port, such as app.example.org, 192.0.2.1, "
            + "2001:db8::1, or *.example.org for all names below it; a list has one name per element")
      }
      if lowercase.hasPrefix("*.") { suffixes.append(String(lowercase.dropFirst())) }
    }
    let own = SocketFile.path(ofHost: host) == nil ? [host] : []
    for name in own + others where !name.isEmpty {
      names.insert(name.lowercased())
      if name.contains(":"), !name.hasPrefix("[") { names.insert("[\(name.lowercased())]") }
    }
    self.names = names.union(names.map { "\($0):\(port)" })
    self.suffixes = suffixes
  }

  /// Returns true if a `Host` header, with or without a port, is one of the names.
  package func contains(_ host: String) -> Bool {
    if names.contains(host) { return true }
    guard let name = Self.name(of: host) else { return false }
    if names.contains(name) || names.contains(name.lowercased()) { return true }
    return !suffixes.isEmpty && suffixes.contains { name.count > $0.count && name.lowercased().hasSuffix($0) }
  }

  /// Returns true if a `Host` header is the literal of this address, which is accepted regardless of the settings: no
  /// other site can claim it as its name.
  package static func isLiteral(_ host: String, of address: ClientAddress?) -> Bool {
    guard let address, var name = name(of: host)?[...] else { return false }
    let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
    if isBracketed { name = name.dropFirst().dropLast() }
    guard isBracketed == name.contains(":") else { return false }
    return ClientAddress(String(name)) == address
  }

  /// Returns the value that the setting `names` needs to accept a `Host` header. Nil if the header cannot be a name.
  package static func setting(for host: String) -> String? {
    guard let name = name(of: host)?.lowercased(), !name.hasPrefix("*"), isName(name) else { return nil }
    return name
  }

  /// Returns true if a `Host` header is a loopback name.
  static func isLoopback(_ host: String) -> Bool {
    name(of: host).map { loopback.contains($0.lowercased()) || ClientAddress($0)?.isLoopback ?? false } ?? false
  }

  /// Returns true if two authorities have the same host and port. The default port of the scheme may be omitted.
  package static func isSame(_ left: some StringProtocol, _ right: some StringProtocol, isSecure: Bool) -> Bool {
    whole(left, isSecure) == whole(right, isSecure)
  }

  private static func whole(_ authority: some StringProtocol, _ isSecure: Bool) -> String {
    var name = authority.lowercased()
    if name.last == ":" { name.removeLast() }
    let hasPort = name.lastIndex(of: ":").map { !name[$0...].contains("]") } ?? false
    return hasPort ? name : name + (isSecure ? ":443" : ":80")
  }

  /// Returns a `Host` header without its port. Nil if the port is not a number.
  private static func name(of host: String) -> String? {
    guard let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") else { return host }
    let port = host[host.index(after: colon)...]
    return port.isEmpty || port.isDecimal ? String(host[..<colon]) : nil
  }

  /// Returns true if a text can be the name of a host: a domain name, optionally with a leading `*.`, or the literal of
  /// an address.
  private static func isName(_ text: String) -> Bool {
    if text.contains(":") {
      let literal = text.hasPrefix("[") && text.hasSuffix("]") ? text.dropFirst().dropLast() : text[...]
      return literal.contains("::") || literal.count(where: { $0 == ":" }) == 7
        ? literal.utf8.allSatisfy { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") || isHexadecimal($0) } : false
    }
    let domain = text.hasPrefix("*.") ? text.dropFirst(2) : text[...]
    return !domain.isEmpty && domain.utf8.count <= 253
      && domain.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
        !label.isEmpty
          && label.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
              UInt8(ascii: "_"):
              true
            default: false
            }
          }
      }
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
    default: false
    }
  }
}
