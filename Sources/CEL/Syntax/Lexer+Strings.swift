extension Lexer {
  /// How a literal is written.
  private struct Style {
    var isBytes = false
    var isRaw = false
    var quote: Unicode.Scalar = "\""
    var isTripled = false
  }

  /// The string or bytes literal at the current place, or nil when there is none.
  mutating func stringLiteral() throws(ExpressionError) -> Token.Kind? {
    var style = Style()
    var length = 0
    if let scalar = peek(length), scalar == "b" || scalar == "B" {
      style.isBytes = true
      length += 1
    }
    if let scalar = peek(length), scalar == "r" || scalar == "R" {
      style.isRaw = true
      length += 1
    }
    guard let quote = peek(length), quote == "\"" || quote == "'" else { return nil }
    style.quote = quote
    style.isTripled = peek(length + 1) == quote && peek(length + 2) == quote
    let start = index
    index += length + (style.isTripled ? 3 : 1)
    return try contents(style, start)
  }

  /// What is between the quotes.
  private mutating func contents(_ style: Style, _ start: Int) throws(ExpressionError) -> Token.Kind {
    var text = String.UnicodeScalarView()
    var bytes: [UInt8] = []
    while let scalar = peek() {
      if scalar == style.quote, !style.isTripled || (peek(1) == style.quote && peek(2) == style.quote) {
        index += style.isTripled ? 3 : 1
        return style.isBytes ? .bytes(bytes) : .string(String(text))
      }
      guard style.isTripled || (scalar != "\n" && scalar != "\r") else { break }
      let isEscape = scalar == "\\" && !style.isRaw
      let value = isEscape ? try escape(style.isBytes) : scalar
      if !isEscape { index += 1 }
      if !style.isBytes {
        text.append(value)
      } else if isEscape {
        bytes.append(UInt8(truncatingIfNeeded: value.value))
      } else {
        bytes.append(contentsOf: UTF8.encode(value).map(Array.init) ?? [])
      }
    }
    throw fault("this string does not end", start)
  }

  /// An escape sequence; that of bytes stands for one byte.
  private mutating func escape(_ isBytes: Bool) throws(ExpressionError) -> Unicode.Scalar {
    let start = index
    guard let kind = peek(1) else { throw fault("this string does not end", start) }
    index += 2
    switch kind {
    case "a": return "\u{07}"
    case "b": return "\u{08}"
    case "f": return "\u{0C}"
    case "n": return "\n"
    case "r": return "\r"
    case "t": return "\t"
    case "v": return "\u{0B}"
    case "\\", "?", "\"", "'", "`": return kind
    case "x", "X": return try code(digits: 2, radix: 16, start)
    case "u" where !isBytes: return try code(digits: 4, radix: 16, start)
    case "U" where !isBytes: return try code(digits: 8, radix: 16, start)
    case "0"..."3":
      index -= 1
      return try code(digits: 3, radix: 8, start)
    default: throw fault("'\\\(kind)' is not an escape sequence\(isBytes ? " of bytes" : "")", start)
    }
  }

  /// The scalar that `digits` digits give.
  private mutating func code(digits: Int, radix: Int, _ start: Int) throws(ExpressionError) -> Unicode.Scalar {
    var value: UInt32 = 0
    for _ in 0..<digits {
      guard let scalar = peek(), scalar.isASCII, let digit = Character(scalar).hexDigitValue, digit < radix else {
        throw fault("this escape sequence needs \(digits) \(radix == 8 ? "octal" : "hexadecimal") digits", start)
      }
      value = value * UInt32(radix) + UInt32(digit)
      index += 1
    }
    guard let scalar = Unicode.Scalar(value) else {
      throw fault("U+\(String(value, radix: 16, uppercase: true)) is not a Unicode scalar", start)
    }
    return scalar
  }
}
