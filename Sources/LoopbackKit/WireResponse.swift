package import KeyValueModel

/// An HTTP response as it came.
package struct WireResponse {
  package let status: Int
  package let headers: [(name: String, value: String)]
  package var body: [UInt8] = []

  /// The value of a header, nil where it was not sent.
  package subscript(name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }

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
