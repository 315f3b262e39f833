/// A set of ASCII characters, asked about one byte at a time.
struct ByteSet {
  private var low: UInt64 = 0
  private var high: UInt64 = 0

  /// The characters of a text, all of them ASCII.
  init(_ text: String) {
    for byte in text.utf8 {
      precondition(byte < 128)
      if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte - 64) }
    }
  }

  /// Whether a byte is one of the characters.
  func contains(_ byte: UInt8) -> Bool {
    (byte < 64 ? low >> UInt64(byte) : byte < 128 ? high >> UInt64(byte - 64) : 0) & 1 == 1
  }

  private static let alphanumerics = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
  /// What a method and the name of a field are made of (RFC 9110 §5.6.2).
  static let token = ByteSet("!#$%&'*+-.^_`|~" + alphanumerics)
  /// What a `Host` is made of: a name or an address in brackets, with or without a port (RFC 3986 §3.2.2).
  static let host = ByteSet("-._~!$&'()*+,;=%:[]" + alphanumerics)
}

extension UInt8 {
  /// White space within a line.
  var isBlank: Bool { self == 0x20 || self == 0x09 }

  /// Whether it may stand in the value of a field (RFC 9110 §5.5): no control character but the tab.
  var isFieldContent: Bool { self >= 0x20 && self != 0x7F || self == 0x09 }

  /// Whether it may stand in a request target; beyond ASCII only what is UTF-8 is taken.
  var isTargetContent: Bool { self > 0x20 && self != 0x7F && self != UInt8(ascii: "#") }

  var isDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }

  static let carriageReturn: UInt8 = 0x0D
  static let lineFeed: UInt8 = 0x0A
}

extension UnsafeMutableRawBufferPointer {
  /// Whether it is this text.
  func isExactly(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    return indices.allSatisfy { self[$0] == text.utf8Start[$0] }
  }

  /// Whether it is a text of lowercase ASCII letters and other characters, whatever the case of its letters.
  func isCaseless(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    for index in 0..<count {
      let byte = self[index]
      let lowered = byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
      if lowered != text.utf8Start[index] { return false }
    }
    return true
  }

  /// Whether it begins with such a text.
  func beginsCaseless(_ text: StaticString) -> Bool {
    count >= text.utf8CodeUnitCount && self[..<text.utf8CodeUnitCount].rebased.isCaseless(text)
  }
}

extension Slice<UnsafeMutableRawBufferPointer> {
  /// The same memory, counted from 0.
  var rebased: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(rebasing: self) }
}
