/// Cuts a text into tokens (CEL language definition, Syntax).
struct Lexer {
  /// Longer signs first.
  private static let signs: [[Unicode.Scalar]] = [
    "==", "!=", "<=", ">=", "&&", "||", "(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "+", "-", "*", "/", "%", "!",
    "<", ">",
  ].map { Array($0.unicodeScalars) }

  /// What is meant by signs of other languages.
  private static let hints: [Unicode.Scalar: String] = [
    "=": "; to compare, write '=='", "&": "; to join conditions, write '&&'", "|": "; to join conditions, write '||'",
  ]

  let text: String
  let scalars: [Unicode.Scalar]
  var index = 0

  init(_ text: String) {
    self.text = text
    scalars = Array(text.unicodeScalars)
  }

  /// The next token. Throws where the text is none.
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

  func peek(_ ahead: Int = 0) -> Unicode.Scalar? {
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
        throw fault("a name in backticks cannot hold '\(scalar)'", index)
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
}
