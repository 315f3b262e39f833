import CEL

/// A reader of JSON text (RFC 8259) that is stricter than Foundation's and exact: an object that names a member twice
/// is refused, whole numbers keep all 64 bits, and nesting is bounded.
struct JSONParser<Dialect: JSONDialect> {
  let bytes: UnsafeBufferPointer<UInt8>
  /// How many bytes have been read.
  private(set) var position = 0
  private var depth = 0
  private let depthLimit: Int

  init(_ bytes: UnsafeBufferPointer<UInt8>, depthLimit: Int) {
    self.bytes = bytes
    self.depthLimit = depthLimit
  }

  /// The one value of the text, with nothing but white space around it.
  mutating func parseText() throws(JSONError) -> Value {
    let value = try parseValue()
    skipWhiteSpace()
    guard isAtEnd else { throw error("something follows the value") }
    return value
  }

  func error(_ reason: String) -> JSONError { JSONError(reason: reason, offset: position) }

  // MARK: Bytes

  /// Whether everything has been read.
  var isAtEnd: Bool { position == bytes.count }

  /// Whether the ASCII character comes next.
  @inline(__always)
  func isNext(_ character: Unicode.Scalar) -> Bool {
    position < bytes.count && bytes[position] == UInt8(ascii: character)
  }

  /// Consumes the character if it comes next, or says false.
  @inline(__always)
  mutating func takes(_ character: Unicode.Scalar) -> Bool {
    guard isNext(character) else { return false }
    position += 1
    return true
  }

  /// Consumes so many bytes, which are there.
  mutating func skip(_ count: Int) { position += count }

  private mutating func skipWhiteSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x0A, 0x0D, 0x09: position += 1
      default: return
      }
    }
  }

  /// Consumes the character after white space, or says false.
  private mutating func consume(_ character: Unicode.Scalar) -> Bool {
    skipWhiteSpace()
    return takes(character)
  }

  // MARK: Values

  mutating func parseValue() throws(JSONError) -> Value {
    skipWhiteSpace()
    guard !isAtEnd else { throw error("the text ends where a value should be") }
    switch bytes[position] {
    case UInt8(ascii: "{"): return try parseObject()
    case UInt8(ascii: "["): return .array(try parseArray())
    case UInt8(ascii: "\""): return .string(try parseString())
    case UInt8(ascii: "t"): return try parseWord("true", .bool(true))
    case UInt8(ascii: "f"): return try parseWord("false", .bool(false))
    case UInt8(ascii: "n"): return try parseWord("null", .null)
    default: return try parseNumber()
    }
  }

  private mutating func parseWord(_ word: StaticString, _ value: Value) throws(JSONError) -> Value {
    for index in 0..<word.utf8CodeUnitCount {
      guard position + index < bytes.count, bytes[position + index] == word.utf8Start[index] else {
        throw error("not a JSON value")
      }
    }
    position += word.utf8CodeUnitCount
    return value
  }

  /// Steps into the array or object that begins here.
  private mutating func enter() throws(JSONError) {
    guard depth < depthLimit else { throw error("nested deeper than \(depthLimit) levels") }
    depth += 1
    position += 1
  }

  private mutating func parseArray() throws(JSONError) -> [Value] {
    try enter()
    defer { depth -= 1 }
    var elements: [Value] = []
    if consume("]") { return elements }
    while true {
      elements.append(try parseValue())
      if consume("]") { return elements }
      guard consume(",") else { throw error("a ',' or ']' is missing") }
    }
  }

  /// The object that begins here, or what it stands for in this dialect unless it may not.
  mutating func parseObject(mayBeMarked: Bool = true) throws(JSONError) -> Value {
    try enter()
    defer { depth -= 1 }
    var members = JSONMembers()
    if consume("}") { return .object(JSONObject(members)) }
    while true {
      skipWhiteSpace()
      guard isNext("\"") else { throw error("a member name must be a string") }
      let start = position
      let name = try parseString()
      guard consume(":") else { throw error("a ':' is missing") }
      if mayBeMarked, members.isEmpty, let value = try Dialect.parseMarked(name, &self) {
        guard consume("}") else { throw error("a '}' is missing") }
        return value
      }
      let value = try parseValue()
      guard members.append(name, value) else {
        throw JSONError(reason: "the member '\(name)' is there twice", offset: start)
      }
      if consume("}") { return .object(JSONObject(members)) }
      guard consume(",") else { throw error("a ',' or '}' is missing") }
    }
  }

  // MARK: Strings

  mutating func parseString() throws(JSONError) -> String {
    position += 1
    let start = position
    var bits: UInt8 = 0
    while !isAtEnd, bytes[position] != UInt8(ascii: "\""), bytes[position] != UInt8(ascii: "\\") {
      guard bytes[position] >= 0x20 else { throw error("a control character in a string must be escaped") }
      bits |= bytes[position]
      position += 1
    }
    guard !isAtEnd else { throw error("a string does not end") }
    guard isNext("\"") else { return try parseEscapedString(from: start) }
    let content = UnsafeBufferPointer(rebasing: bytes[start..<position])
    // ASCII needs no validation, which is slow: it is generic code of the standard library.
    let text = bits < 0x80 ? String(decoding: content, as: UTF8.self) : try decoded(content)
    position += 1
    return text
  }

  private func decoded(_ utf8: some Sequence<UInt8>) throws(JSONError) -> String {
    guard let text = String(validating: utf8, as: UTF8.self) else { throw error("a string is not valid UTF-8") }
    return text
  }

  private mutating func parseEscapedString(from start: Int) throws(JSONError) -> String {
    var buffer = Array(bytes[start..<position])
    while !isAtEnd {
      let byte = bytes[position]
      switch byte {
      case UInt8(ascii: "\""):
        let text = try decoded(buffer)
        position += 1
        return text
      case UInt8(ascii: "\\"):
        position += 1
        try parseEscape(into: &buffer)
      case 0..<0x20:
        throw error("a control character in a string must be escaped")
      default:
        buffer.append(byte)
        position += 1
      }
    }
    throw error("a string does not end")
  }

  private mutating func parseEscape(into buffer: inout [UInt8]) throws(JSONError) {
    guard !isAtEnd else { throw error("a string does not end") }
    let byte = bytes[position]
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): buffer.append(byte)
    case UInt8(ascii: "b"): buffer.append(0x08)
    case UInt8(ascii: "f"): buffer.append(0x0C)
    case UInt8(ascii: "n"): buffer.append(0x0A)
    case UInt8(ascii: "r"): buffer.append(0x0D)
    case UInt8(ascii: "t"): buffer.append(0x09)
    case UInt8(ascii: "u"): buffer.append(contentsOf: Character(try parseUnicodeEscape()).utf8)
    default: throw error("not an escape sequence of JSON")
    }
  }

  private mutating func parseUnicodeEscape() throws(JSONError) -> Unicode.Scalar {
    let first = try parseHexQuad()
    if let scalar = Unicode.Scalar(first) { return scalar }
    guard (0xD800..<0xDC00).contains(first), isNext("\\"), bytes[(position + 1)...].first == UInt8(ascii: "u") else {
      throw error("half of a surrogate pair")
    }
    position += 2
    let second = try parseHexQuad()
    guard (0xDC00..<0xE000).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    else { throw error("half of a surrogate pair") }
    return scalar
  }

  private mutating func parseHexQuad() throws(JSONError) -> UInt32 {
    guard position + 4 <= bytes.count else { throw error("\\u wants four hexadecimal digits") }
    var code: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = Character(Unicode.Scalar(bytes[position])).hexDigitValue else {
        throw error("\\u wants four hexadecimal digits")
      }
      code = code << 4 | UInt32(digit)
      position += 1
    }
    return code
  }

  // MARK: Numbers

  private mutating func parseNumber() throws(JSONError) -> Value {
    let start = position
    _ = takes("-")
    let firstDigit = position
    guard skipDigits() else { throw error("not a JSON value") }
    guard bytes[firstDigit] != UInt8(ascii: "0") || position == firstDigit + 1 else {
      throw error("a number must not begin with 0")
    }
    let isWhole = try !skipFractionAndExponent()
    if isWhole, let magnitude = wholeNumber(from: firstDigit) {
      // "-0" is a double: as a whole number it would lose its sign.
      let isNegated = start < firstDigit && magnitude != 0 && magnitude <= 1 << 63
      if isNegated { return .integer(Int64(truncatingIfNeeded: 0 &- magnitude)) }
      if start == firstDigit, let integer = Int64(exactly: magnitude) { return .integer(integer) }
    }
    let text = UnsafeBufferPointer(rebasing: bytes[start..<position])
    guard let number = Self.shortDecimal(text) ?? Double(String(decoding: text, as: UTF8.self)), number.isFinite else {
      throw JSONError(reason: "a number is beyond the range of a double", offset: position, isOutOfRange: true)
    }
    return Dialect.number(number, of: String(decoding: text, as: UTF8.self))
  }

  /// The double next to a decimal with at most 15 digits and without an exponent, nil for any other. Both the digits as
  /// a whole number and the power of ten are doubles then, so that their quotient is rounded once, and rightly
  /// (Clinger, How to Read Floating Point Numbers Accurately, 1990). Most numbers are such, and need no string and no
  /// function of the C library.
  private static func shortDecimal(_ text: UnsafeBufferPointer<UInt8>) -> Double? {
    guard text.count <= 16 else { return nil }
    var digits: Int64 = 0
    var scale = 1.0
    var isBehindPoint = false
    for byte in text.drop(while: { $0 == UInt8(ascii: "-") }) {
      if byte == UInt8(ascii: ".") {
        isBehindPoint = true
        continue
      }
      guard byte.isASCIIDigit else { return nil }
      digits = digits * 10 + Int64(byte - UInt8(ascii: "0"))
      if isBehindPoint { scale *= 10 }
    }
    guard digits < 1_000_000_000_000_000 else { return nil }
    let magnitude = Double(digits) / scale
    return text.first == UInt8(ascii: "-") ? -magnitude : magnitude
  }

  /// The number that the digits from `start` to here say, nil where it has more than 64 bits.
  func wholeNumber(from start: Int) -> UInt64? {
    var number: UInt64 = 0
    for digit in bytes[start..<position] {
      let (tens, isOver) = number.multipliedReportingOverflow(by: 10)
      let (sum, isBeyond) = tens.addingReportingOverflow(UInt64(digit - UInt8(ascii: "0")))
      guard !isOver, !isBeyond else { return nil }
      number = sum
    }
    return number
  }

  /// The digits from here on; says whether there was at least one.
  mutating func skipDigits() -> Bool {
    let start = position
    while position < bytes.count, bytes[position].isASCIIDigit { position += 1 }
    return position > start
  }

  /// Says whether there was a fraction or an exponent.
  private mutating func skipFractionAndExponent() throws(JSONError) -> Bool {
    let start = position
    if takes("."), !skipDigits() { throw error("a digit must follow the point") }
    if takes("e") || takes("E") {
      if !takes("+") { _ = takes("-") }
      guard skipDigits() else { throw error("an exponent wants a digit") }
    }
    return position > start
  }
}

/// What sets the readers of two kinds of JSON text apart.
protocol JSONDialect {
  /// The value of a number that is no integer of 64 bits; `double` is next to what `text` says.
  static func number(_ double: Double, of text: @autoclosure () -> String) -> Value

  /// The value that an object stands for whose first member has this name; the parser stands before that member's
  /// value, and behind it afterwards. Nil where it is an object like any other; then nothing has been read.
  static func parseMarked(_ name: String, _ parser: inout JSONParser<Self>) throws(JSONError) -> Value?
}

/// JSON as RFC 8259 has it and clients send it.
enum PlainJSON: JSONDialect {
  /// The double where it is not whole, so that no integer is taken for it, or where the text says what the double
  /// stands for; else the integer of 64 bits that the text says exactly, or `rounded`.
  static func number(_ double: Double, of text: @autoclosure () -> String) -> Value {
    guard double.magnitude <= 0x1p63, double.rounded() == double else { return .number(double) }
    let text = text()
    // Of at most 15 digits, each decimal below 10^15 has a double of its own.
    if double != 0, double.magnitude < 1e15, text.utf8.count <= 15 { return .number(double) }
    guard let decimal = ShortestDecimal(parsing: text) else { return .rounded(double) }
    if decimal == ShortestDecimal(double) { return .number(double) }
    return decimal.integer.map(Value.integer) ?? .rounded(double)
  }

  static func parseMarked(_ name: String, _ parser: inout JSONParser<PlainJSON>) throws(JSONError) -> Value? { nil }
}

/// Why a text is not JSON that the model can hold.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, as a clause: `a member name must be a string`.
  public let reason: String
  /// How many bytes of the text stand before the mistake.
  public let offset: Int
  /// Whether what stands there is JSON, a number beyond the range of a double, which no value can hold.
  public let isOutOfRange: Bool

  /// A mistake at a place.
  public init(reason: String, offset: Int, isOutOfRange: Bool = false) {
    self.reason = reason
    self.offset = offset
    self.isOutOfRange = isOutOfRange
  }

  /// The reason with its place.
  public var description: String { "\(reason) (byte \(offset))" }
}
