import Foundation

/// Base64 for URLs, without padding (RFC 4648 §5, RFC 7515 §2).
enum Base64URL {
  /// The bytes that a text stands for; nil where it has other characters, padding, or bits that no byte has, so that no
  /// two texts stand for the same bytes.
  static func bytes(of text: some StringProtocol) -> [UInt8]? {
    var standard = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "-"): standard += "+"
      case UInt8(ascii: "_"): standard += "/"
      case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
      default: standard.unicodeScalars.append(Unicode.Scalar(byte))
      }
    }
    standard += String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4)
    guard let data = Data(base64Encoded: standard) else { return nil }
    let bytes = Array(data)
    return self.text(of: bytes) == text ? bytes : nil
  }

  /// The text that stands for bytes.
  static func text(of bytes: some Sequence<UInt8>) -> String {
    String(
      Data(bytes).base64EncodedString().compactMap { character in
        switch character {
        case "+": "-"
        case "/": "_"
        case "=": nil
        default: character
        }
      })
  }
}
