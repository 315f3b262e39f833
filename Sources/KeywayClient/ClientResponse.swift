/// A whole response of the server.
package struct ClientResponse: Hashable, Sendable {
  /// The status code.
  package var status: Int
  /// The header fields, names in lower case.
  package var headers: [String: String]
  /// The body, empty where there is none.
  package var body: [UInt8]

  /// A response with these parts; names of header fields in any case.
  package init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = Dictionary(
      headers.map { ($0.key.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first })
    self.body = body
  }

  /// The value of a header field, whatever the case of its name.
  package func header(_ name: String) -> String? { headers[name.lowercased()] }

  /// The body as text.
  package var text: String { String(decoding: body, as: UTF8.self) }
}
