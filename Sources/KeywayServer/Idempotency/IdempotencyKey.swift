/// The key of an `Idempotency-Key` header: what a client calls a request that it may have to send again. The same text
/// of two identities is two keys.
package struct IdempotencyKey: Hashable, Sendable {
  /// The most characters of a key.
  package static let maximumLength = 255

  /// The characters, without the quotation marks and backslashes of the header.
  package let text: String
  /// Whose key it is; nil where that is not known.
  package let owner: IdentityMark?

  /// The key of a header's text, or `malformed-query`. A String of Structured Fields (RFC 9651 §3.3.3), as the draft
  /// wants it, or bare, as many clients send it: `"a-1"` and `a-1` are one key.
  package init(_ header: String, of owner: IdentityMark? = nil) throws(Problem) {
    let field = header.trimmingSpaces()
    let text = field.hasPrefix("\"") ? Self.unquoted(field) : field
    guard let text, !text.contains("\"") || field.hasPrefix("\"") else {
      throw Problem(.malformedQuery, "Idempotency-Key has a quotation mark that is not closed, or more behind it")
    }
    guard (1...Self.maximumLength).contains(text.utf8.count), text.isVisibleASCII else {
      throw Problem(
        .malformedQuery, "Idempotency-Key is one key of 1 to \(Self.maximumLength) visible ASCII characters")
    }
    self.text = text
    self.owner = owner
  }

  /// What stands between the quotation marks; nil where they, or what is escaped, are not as they should be.
  private static func unquoted(_ field: String) -> String? {
    var rest = field.utf8.dropFirst()
    var bytes: [UInt8] = []
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "\""): return rest.isEmpty ? String(decoding: bytes, as: UTF8.self) : nil
      case UInt8(ascii: "\\"):
        guard let escaped = rest.popFirst(), escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else {
          return nil
        }
        bytes.append(escaped)
      default: bytes.append(byte)
      }
    }
    return nil
  }
}
