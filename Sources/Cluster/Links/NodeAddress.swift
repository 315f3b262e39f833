import Foundation
import HTTPTypes
import KeywayServer

/// The address of another node: `http://host:port`, `https://host:port`, or `unix:` and the path of its socket.
package struct NodeAddress: Hashable, Sendable, CustomStringConvertible {
  enum Place: Hashable, Sendable {
    case host(String, port: String)
    case socket(path: String)
  }

  let place: Place
  /// True for `https`: the node is reached through whatever ends TLS in front of it.
  let isSecure: Bool
  /// The value of the `Host` field for it (RFC 9110 §7.2).
  let authority: String
  /// The address as it was written.
  package let description: String

  /// Creates the address that a text denotes. Throws a fault that says what is wrong with the text.
  package init(_ text: String) throws(NodeFault) {
    description = text
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      guard !path.isEmpty, path.utf8.count < 108 else {
        throw NodeFault(
          "'\(text)' is not the address of a node: the path of a socket must have 1 to 107 bytes", isUnsent: true)
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

/// The token that this node shows another one. `nodes.tokenFile`.
struct NodeToken: Sendable {
  private let file: String?

  /// Creates a token that is read from a file; `ClusterOptions.none` stands for no file.
  init(file: String) { self.file = file == ClusterOptions.none ? nil : file }

  /// True if a token file is set.
  var isConfigured: Bool { file != nil }

  /// The header fields that carry the token in a request to the other node; empty if no file is set. The file is read
  /// on each access, so that the token can be replaced before it expires. Throws a fault with `isUnsent` if the file
  /// cannot be read or does not hold exactly one token.
  var fields: [(name: String, value: String)] { get throws(NodeFault) { try fields(named: .authorization) } }

  /// Returns the token in another header field, for a request whose own credentials are a client's.
  func fields(named name: HTTPField.Name) throws(NodeFault) -> [(name: String, value: String)] {
    guard let file else { return [] }
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
      throw NodeFault("\(file) (nodes.tokenFile) cannot be read", isUnsent: true)
    }
    let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw NodeFault("\(file) (nodes.tokenFile) must contain exactly one token", isUnsent: true)
    }
    return [(name.rawName, "Bearer \(token)")]
  }
}

/// The addresses that other nodes may give as their own. `nodes.urls`.
///
/// A node states its own address, and requests of clients are sent there with their credentials. So nothing is sent to
/// an address that an operator has not listed. Addresses are compared after normalization (RFC 3986 §6.2): case is
/// ignored, a missing port is the default port of the scheme, and a slash at the end is ignored.
struct NodeURLs: Sendable {
  private let urls: Set<String>

  /// Creates the list. Throws a fault that names the entry that is not an address.
  init(_ texts: [String] = []) throws(NodeFault) {
    var urls: Set<String> = []
    for text in texts {
      do throws(NodeFault) {
        urls.insert(try Self.normalized(text))
      } catch {
        throw NodeFault("nodes.urls: \(error.reason)", isUnsent: true)
      }
    }
    self.urls = urls
  }

  /// Returns true if an address that a node gives as its own is listed.
  func contains(_ url: String) -> Bool {
    guard !urls.isEmpty, let url = try? Self.normalized(url) else { return false }
    return urls.contains(url)
  }

  private static func normalized(_ text: String) throws(NodeFault) -> String {
    guard !text.hasPrefix("unix:") else { return try NodeAddress(text).description }
    var url = text.lowercased()
    _ = try NodeAddress(url)
    if url.hasSuffix("/") { url.removeLast() }
    guard let range = url.firstRange(of: "://") else { return url }
    // After the brackets of an IPv6 address, a colon can only precede the port.
    let host = url[range.upperBound...]
    let hasPort = host.dropFirst(host.hasPrefix("[") ? host.prefix { $0 != "]" }.count : 0).contains(":")
    return hasPort ? url : url + (url.hasPrefix("https:") ? ":443" : ":80")
  }
}
