package import KeyValueModel

/// An HTTP/1.1 request.
package struct WireRequest: Hashable, Sendable {
  /// The method.
  package var method: String
  /// The path with its query.
  package var target: String
  /// The header fields, except those derived from the body and the host.
  package var headers: [String: String]
  /// The body, which is JSON unless the headers say otherwise.
  package var body: String?

  /// Creates a request with these parts.
  package init(_ method: String, _ target: String, _ headers: [String: String] = [:], body: String? = nil) {
    (self.method, self.target, self.headers, self.body) = (method, target, headers, body)
  }

  /// Returns the request as sent to a server, with the address's token, if any.
  package func text(to address: SocketAddress) -> String {
    var request = self
    if let token = address.token, headers["Authorization"] == nil {
      request.headers["Authorization"] = "Bearer \(token)"
    }
    return request.text(host: address.hostField)
  }

  /// Returns the request as sent. `host` is the value of the `Host` header field, unless the headers have one.
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

/// An HTTP/1.1 response as received.
package struct WireResponse: Sendable {
  /// The status code.
  package let status: Int
  /// The header fields in order, with their names as they were sent.
  package let headers: [(name: String, value: String)]
  /// The body without its transfer coding.
  package var body: [UInt8] = []

  /// Creates a response without its body; nil if `head`, with or without its last empty line, is malformed.
  package init?(head: some Sequence<UInt8>) {
    let lines = String(decoding: Array(head), as: UTF8.self).split { $0.isNewline }
    guard let words = lines.first?.split(separator: " "), words.count >= 2, words[0].hasPrefix("HTTP/1."),
      let status = Int(words[1])
    else { return nil }
    var headers: [(name: String, value: String)] = []
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { return nil }
      headers.append((String(line[..<colon]), String(line[line.index(after: colon)...].drop { $0 == " " })))
    }
    (self.status, self.headers) = (status, headers)
  }

  /// The value of a header field; nil if it was not sent.
  package subscript(name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }

  /// True if the status is 2xx.
  package var isSuccess: Bool { (200..<300).contains(status) }

  /// True if the body has the chunked transfer coding (RFC 9112 §7.1).
  package var isChunked: Bool { self["Transfer-Encoding"]?.lowercased().hasSuffix("chunked") ?? false }

  /// The body as text.
  package var text: String { String(decoding: body, as: UTF8.self) }

  /// The body as JSON; null if it is not JSON.
  package var json: Value { (try? Value(json: body)) ?? .null }

  /// The code of a problem: the last part of its `type`.
  package var problem: String? {
    guard self["Content-Type"] == "application/problem+json" else { return nil }
    return json["type"].text?.split(separator: "/").last.map(String.init)
  }
}
