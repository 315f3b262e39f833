import CEL

/// A path to a value inside a JSON document (RFC 6901): a member name or an array index for each level.
struct JSONPointer: Sendable {
  /// The names and indices from the outermost inward, unescaped; empty for the whole document.
  let tokens: [String]

  /// Creates the pointer that a text represents: empty, or each token after a `/`, with `~1` for a slash and `~0` for a
  /// tilde in it. Nil if the text does not have this form.
  init?(_ text: String) {
    guard !text.isEmpty else {
      tokens = []
      return
    }
    guard text.utf8.first == UInt8(ascii: "/") else { return nil }
    var tokens: [String] = []
    for part in text.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard let token = Self.unescaped(part) else { return nil }
      tokens.append(token)
    }
    self.tokens = tokens
  }

  /// The text that represents this pointer.
  var text: String {
    var text = ""
    for token in tokens {
      text += "/"
      for scalar in token.unicodeScalars {
        switch scalar {
        case "~": text += "~0"
        case "/": text += "~1"
        default: text.unicodeScalars.append(scalar)
        }
      }
    }
    return text
  }

  /// Returns true if both lead to the same location.
  func isSame(as other: JSONPointer) -> Bool { tokens.count == other.tokens.count && isPrefix(of: other) }

  /// Returns true if this pointer leads to a value that contains the location of `other` and is not that location
  /// itself.
  func isProperPrefix(of other: JSONPointer) -> Bool { tokens.count < other.tokens.count && isPrefix(of: other) }

  private func isPrefix(of other: JSONPointer) -> Bool {
    zip(tokens, other.tokens).allSatisfy { $0.hasSameScalars(as: $1) }
  }

  private static func unescaped(_ part: Substring.UTF8View) -> String? {
    var bytes: [UInt8] = []
    var rest = part[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "~") else {
        bytes.append(byte)
        continue
      }
      switch rest.popFirst() {
      case UInt8(ascii: "0"): bytes.append(UInt8(ascii: "~"))
      case UInt8(ascii: "1"): bytes.append(UInt8(ascii: "/"))
      default: return nil
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The meaning of a token as an index of an array.
  enum Index: Hashable, Sendable {
    /// An index.
    case place(Int)
    /// `-`, the index after the last element.
    case end
    /// A number larger than any index.
    case beyond
    /// Not an index: a sign, a leading zero, a name.
    case invalid
  }

  /// The token as an index of an array: digits without a leading zero, or `-`.
  static func index(_ token: String) -> Index {
    let digits = token.utf8
    if digits.elementsEqual("-".utf8) { return .end }
    guard let first = digits.first, digits.allSatisfy(\.isASCIIDigit) else { return .invalid }
    guard first != UInt8(ascii: "0") || digits.count == 1 else { return .invalid }
    return Int(token).map(Index.place) ?? .beyond
  }
}
