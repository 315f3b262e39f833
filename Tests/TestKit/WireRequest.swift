/// A request of HTTP/1.1.
package struct WireRequest: Hashable, Sendable {
  /// The method.
  package var method: String
  /// The path with its query.
  package var target: String
  /// The header fields, but for those that the body and the host give.
  package var headers: [String: String]
  /// The body, which is JSON unless the headers say otherwise.
  package var body: String?

  /// A request with these parts.
  package init(_ method: String, _ target: String, _ headers: [String: String] = [:], body: String? = nil) {
    (self.method, self.target, self.headers, self.body) = (method, target, headers, body)
  }

  /// The request as it stands on the wire to a server, with the token that the address has, if any.
  package func text(to address: SocketAddress) -> String {
    var request = self
    if let token = address.token, headers["Authorization"] == nil {
      request.headers["Authorization"] = "Bearer \(token)"
    }
    return request.text(host: address.hostField)
  }

  /// The request as it stands on the wire; `host` is the value of the `Host` header field, unless the headers have one.
  package func text(host: String) -> String {
    var lines = ["\(method) \(target) HTTP/1.1"]
    if headers["Host"] == nil { lines.append("Host: \(host)") }
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) { lines.append("\(name): \(value)") }
    if let body {
      if headers["Content-Type"] == nil { lines.append("Content-Type: application/json") }
      lines.append("Content-Length: \(body.utf8.count)")
    }
    return lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")
  }
}
