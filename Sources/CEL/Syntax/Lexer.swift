/// Splits a text into tokens (CEL language definition, Syntax).
struct Lexer {
  /// Longer signs first.
  private static let signs: [[Unicode.Scalar]] = [
    "==", "!=", "<=", ">=", "&&", "||", "(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "+", "-", "*", "/", "%", "!",
    "<", ">",
  ].map { Array($0.unicodeScalars) }

  /// Advice on signs of other languages.
  private static let hints: [Unicode.Scalar: String] = [
    "=": "; to compare, write '=='", "&": "; to join conditions, write '&&'", "|": "; to join conditions, write '||'",
  ]

  private let text: String
  private let scalars: [Unicode.Scalar]
  private var index = 0

  init(_ text: String) {
    self.text = text
    scalars = Array(text.unicodeScalars)
  }

  /// Returns the next token. Throws if the text is not a token.
  mutating func next() throws(ExpressionError) -> Token {
    skipBlanks()
    let start = index
    guard let first = peek() else { return Token(kind: .end, offset: start) }
    if let string = try stringLiteral() { return Token(kind: string, offset: start) }
    if Lexer.isLetter(first) { return Token(kind: .identifier(name()), offset: start) }
    if Lexer.isDigit(first) || (first == "." && peek(1).map(Lexer.isDigit) == true) {
      return Token(kind: try number(), offset: start)
    }
    if first == "`" { return Token(kind: .quoted(try quotedName()), offset: start) }
    for sign in Lexer.signs where scalars[index...].starts(with: sign) {
      index += sign.count
      return Token(kind: .sign(sign.map(String.init).joined()), offset: start)
    }
    let code = String(first.value, radix: 16, uppercase: true)
    let shown = first.isASCII && first.value > 0x20 ? "'\(first)'" : "U+\(code)"
    throw fault("unexpected character \(shown)\(Lexer.hints[first] ?? "")", start)
  }

  private func peek(_ ahead: Int = 0) -> Unicode.Scalar? {
    index + ahead < scalars.count ? scalars[index + ahead] : nil
  }

  func fault(_ message: String, _ offset: Int) -> ExpressionError { ExpressionError(message, at: offset, in: text) }

  /// Skips blanks, ends of lines and comments, which begin with `//`.
  private mutating func skipBlanks() {
    while let scalar = peek() {
      if scalar == "/", peek(1) == "/" {
        while let inside = peek(), inside != "\n" { index += 1 }
      } else if scalar == " " || (0x09...0x0D).contains(scalar.value) {
        index += 1
      } else {
        return
      }
    }
  }

  private mutating func name() -> String {
    var name = String.UnicodeScalarView()
    while let scalar = peek(), Lexer.isLetter(scalar) || Lexer.isDigit(scalar) {
      name.append(scalar)
      index += 1
    }
    return String(name)
  }

  /// A name in backticks: letters, digits, `_ . - /` and blanks.
  private mutating func quotedName() throws(ExpressionError) -> String {
    let start = index
    index += 1
    var name = String.UnicodeScalarView()
    while let scalar = peek(), scalar != "`" {
      guard Lexer.isLetter(scalar) || Lexer.isDigit(scalar) || ".-/ ".unicodeScalars.contains(scalar) else {
        throw fault("a name in backticks cannot contain '\(scalar)'", index)
      }
      name.append(scalar)
      index += 1
    }
    guard peek() == "`", !name.isEmpty else { throw fault("this name in backticks is empty or does not end", start) }
    index += 1
    return String(name)
  }

  static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
    ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) || scalar == "_"
  }

  static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

  // MARK: Strings

  /// The notation of a literal.
  private struct Style {
    var isBytes = false
    var isRaw = false
    var quote: Unicode.Scalar = "\""
    var isTripled = false
  }

  /// Returns the string or bytes literal at the current place; nil if there is none.
  private mutating func stringLiteral() throws(ExpressionError) -> Token.Kind? {
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

  /// Reads the text between the quotes.
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

  /// Reads an escape sequence; in bytes it stands for one byte.
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

  /// Reads the scalar that is written with `digits` digits.
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

  // MARK: Numbers

  /// A number at the current place: an integer, `0x…`, either with `u` after it, or a double.
  private mutating func number() throws(ExpressionError) -> Token.Kind {
    let start = index
    if peek() == "0", peek(1) == "x" || peek(1) == "X", peek(2)?.properties.isASCIIHexDigit == true {
      index += 2
      return try integer(digits { $0.properties.isASCIIHexDigit }, radix: 16, start)
    }
    let whole = digits(Lexer.isDigit)
    var decimal = whole
    if peek() == ".", peek(1).map(Lexer.isDigit) == true {
      index += 1
      decimal += "." + digits(Lexer.isDigit)
    }
    decimal += exponent()
    guard decimal != whole else { return try integer(whole, radix: 10, start) }
    guard let number = Double(decimal.hasPrefix(".") ? "0" + decimal : decimal) else {
      throw fault("'\(decimal)' is not a number", start)
    }
    return .double(number)
  }

  /// `e+10`, or nothing.
  private mutating func exponent() -> String {
    guard peek() == "e" || peek() == "E" else { return "" }
    let hasSign = peek(1) == "+" || peek(1) == "-"
    guard let first = peek(hasSign ? 2 : 1), Lexer.isDigit(first) else { return "" }
    let sign = hasSign ? peek(1).map(String.init) ?? "" : ""
    index += hasSign ? 2 : 1
    return "e" + sign + digits(Lexer.isDigit)
  }

  /// Returns the integer of `digits`. The parser, which knows the sign, checks the range of a signed one.
  private mutating func integer(_ digits: String, radix: Int, _ start: Int) throws(ExpressionError) -> Token.Kind {
    guard let number = UInt64(digits, radix: radix) else {
      throw fault("the integer \(radix == 16 ? "0x" : "")\(digits.prefix(40)) is out of range", start)
    }
    guard peek() == "u" || peek() == "U" else { return .int(number) }
    index += 1
    return .uint(number)
  }

  private mutating func digits(_ isDigit: (Unicode.Scalar) -> Bool) -> String {
    var digits = String.UnicodeScalarView()
    while let scalar = peek(), isDigit(scalar) {
      digits.append(scalar)
      index += 1
    }
    return String(digits)
  }
}

/// A piece of the text.
struct Token {
  enum Kind: Equatable {
    case identifier(String)
    /// A name in backticks, only after a dot.
    case quoted(String)
    case int(UInt64)
    case uint(UInt64)
    case double(Double)
    case string(String)
    case bytes([UInt8])
    /// An operator or a bracket.
    case sign(String)
    case end
  }

  let kind: Kind
  /// The start of the token, in Unicode scalars.
  let offset: Int

  /// True if it is a name in backticks.
  var isQuoted: Bool {
    if case .quoted = kind { true } else { false }
  }

  /// The text in messages.
  var text: String {
    switch kind {
    case .identifier(let name): "'\(name)'"
    case .quoted(let name): "'`\(name)`'"
    case .int(let number): "'\(number)'"
    case .uint(let number): "'\(number)u'"
    case .double(let number): "'\(number)'"
    case .string: "a string"
    case .bytes: "bytes"
    case .sign(let sign): "'\(sign)'"
    case .end: "the end of the expression"
    }
  }
}
