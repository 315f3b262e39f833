/// The name of one request, in the answer's `X-Request-Id`, in the access log and in problems: given by the client, or
/// made.
package struct RequestID: Hashable, Sendable {
  /// The name of the header field.
  package static let fieldName = "X-Request-Id"
  /// The name: 1 to 128 visible ASCII characters, so that it forges no line and no other field.
  package let text: String

  /// What a client sent; nil where it is no name.
  init?(sent bytes: UnsafeRawBufferPointer) {
    guard (1...128).contains(bytes.count), bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
    text = String(decoding: bytes, as: UTF8.self)
  }

  /// The name of a request that another one carries and that has none itself.
  init(carriedBy carrier: RequestID, number: Int) {
    text = "\(carrier.text.prefix(100)).\(number)"
  }

  /// A made name.
  init(made text: String) {
    self.text = text
  }
}
