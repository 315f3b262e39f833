extension Lexer {
  /// A number at the current place: an integer, `0x…`, either with `u` after it, or a double.
  mutating func number() throws(ExpressionError) -> Token.Kind {
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

  /// The integer of `digits`. That a signed one is in range is for the parser, which knows its sign.
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
