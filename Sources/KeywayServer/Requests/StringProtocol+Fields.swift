import Support

/// What header fields and parameters are looked at for.
extension StringProtocol {
  /// The text without spaces and tabs at its ends.
  func trimmingSpaces() -> String {
    let isSpace = { (character: Character) in character == " " || character == "\t" }
    guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else {
      return ""
    }
    return String(self[first...last])
  }

  /// The text as a part of a target: unreserved characters stay (RFC 3986 §2.3).
  var percentEncoded: String {
    let unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8
    return utf8.map { byte in
      unreserved.contains(byte) ? String(Unicode.Scalar(byte)) : "%" + byte.padded(to: 2, radix: 16).uppercased()
    }.joined()
  }

  /// Whether it is made of decimal digits alone, at least one.
  var isDecimal: Bool { !isEmpty && utf8.allSatisfy { (0x30...0x39).contains($0) } }

  /// Whether it is made of visible ASCII characters alone.
  var isVisibleASCII: Bool { utf8.allSatisfy { (0x21...0x7E).contains($0) } }
}
