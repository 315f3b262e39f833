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

/// The token that this node shows another one. `nodes.tokenFile`.
struct NodeToken: Sendable {
  private let file: String?

  /// The token in a file, or `ClusterOptions.none`.
  init(file: String) { self.file = file == ClusterOptions.none ? nil : file }

  /// True if there is a file.
  var isThere: Bool { file != nil }

  /// What a request to the other node has of it; nothing where there is none. The file is read each time, so that a
  /// token can be replaced before it expires. Throws a fault by which nothing was sent, where that cannot be read or
  /// does not have one token.
  var fields: [(name: String, value: String)] { get throws(NodeFault) { try fields(named: .authorization) } }

  /// Returns the same in another field, for a request whose own credentials are a client's.
  func fields(named name: HTTPField.Name) throws(NodeFault) -> [(name: String, value: String)] {
    guard let file else { return [] }
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
      throw NodeFault("\(file) (nodes.tokenFile) cannot be read", isUnsent: true)
    }
    let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw NodeFault("\(file) (nodes.tokenFile) does not have one token", isUnsent: true)
    }
    return [(name.rawName, "Bearer \(token)")]
  }
}
