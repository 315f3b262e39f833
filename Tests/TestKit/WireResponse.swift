package import KeyValueModel

/// A response of HTTP/1.1 as it came.
package struct WireResponse: Sendable {
  /// The status code.
  package let status: Int
  /// The header fields in order, with their names as they were sent.
  package let headers: [(name: String, value: String)]
  /// The body without its transfer coding.
  package var body: [UInt8] = []

  /// A response without its body; nil where `head`, with or without its last empty line, is none.
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

  /// The value of a header field; nil where it was not sent.
  package subscript(name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }

  /// Whether the status is one of success.
  package var isSuccess: Bool { (200..<300).contains(status) }

  /// Whether the body has the chunked transfer coding (RFC 9112 §7.1).
  package var isChunked: Bool { self["Transfer-Encoding"]?.lowercased().hasSuffix("chunked") ?? false }

  /// The body as text.
  package var text: String { String(decoding: body, as: UTF8.self) }

  /// The body as JSON; null where it is none.
  package var json: Value { (try? Value(json: body)) ?? .null }

  /// The code of a problem: the last part of its `type`.
  package var problem: String? {
    guard self["Content-Type"] == "application/problem+json" else { return nil }
    return json["type"].text?.split(separator: "/").last.map(String.init)
  }
}
