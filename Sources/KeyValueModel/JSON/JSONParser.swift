import CEL

/// A parser of JSON text (RFC 8259) that is exact, and stricter than Foundation's: it refuses an object that names a
/// member twice, keeps all 64 bits of whole numbers, and bounds the nesting.
struct JSONParser<Dialect: JSONDialect> {
  let bytes: UnsafeBufferPointer<UInt8>
  /// The number of bytes read so far.
  private(set) var position = 0
  private var depth = 0
  private let depthLimit: Int

  init(_ bytes: UnsafeBufferPointer<UInt8>, depthLimit: Int) {
    self.bytes = bytes
    self.depthLimit = depthLimit
  }

  /// Parses the whole text: one value, surrounded by white space at most.
  mutating func parseText() throws(JSONError) -> Value {
    let value = try parseValue()
    skipWhiteSpace()
    guard isAtEnd else { throw error("unexpected text after the value") }
    return value
  }

  func error(_ reason: String) -> JSONError { JSONError(reason: reason, offset: position) }

  // MARK: Bytes

  /// True if everything has been read.
  var isAtEnd: Bool { position == bytes.count }

  /// Returns true if the ASCII character comes next.
  @inline(__always)
  func isNext(_ character: Unicode.Scalar) -> Bool {
    position < bytes.count && bytes[position] == UInt8(ascii: character)
  }

  /// Consumes the character if it comes next; returns false otherwise.
  @inline(__always)
  mutating func takes(_ character: Unicode.Scalar) -> Bool {
    guard isNext(character) else { return false }
    position += 1
    return true
  }

  /// Consumes `count` bytes, which must exist.
  mutating func skip(_ count: Int) { position += count }

  private mutating func skipWhiteSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x0A, 0x0D, 0x09: position += 1
      default: return
      }
    }
  }

  /// Consumes white space, and then the character if it comes next; returns false otherwise.
  private mutating func consume(_ character: Unicode.Scalar) -> Bool {
    skipWhiteSpace()
    return takes(character)
  }

  // MARK: Values

  mutating func parseValue() throws(JSONError) -> Value {
    skipWhiteSpace()
    guard !isAtEnd else { throw error("the text ends where a value is expected") }
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

  /// Enters the array or object that begins here.
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

  /// Parses the object that begins here. If `mayBeMarked` is true, returns the value that a marked object stands for in
  /// this dialect.
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
        throw JSONError(reason: "the member '\(name)' occurs twice", offset: start)
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
    guard !isAtEnd else { throw error("a string is not terminated") }
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
    throw error("a string is not terminated")
  }

  private mutating func parseEscape(into buffer: inout [UInt8]) throws(JSONError) {
    guard !isAtEnd else { throw error("a string is not terminated") }
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
    guard position + 4 <= bytes.count else { throw error("\\u needs four hexadecimal digits") }
    var code: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = Character(Unicode.Scalar(bytes[position])).hexDigitValue else {
        throw error("\\u needs four hexadecimal digits")
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

  /// The double nearest to a decimal with at most 15 digits and no exponent; nil for any other text. Both the digits as
  /// a whole number and the power of ten are exact doubles, so their quotient is rounded once and correctly (Clinger,
  /// "How to Read Floating Point Numbers Accurately", 1990). Most numbers have this form, which needs no string and no
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

  /// The number whose digits stand from `start` to the current position; nil if it does not fit into 64 bits.
  func wholeNumber(from start: Int) -> UInt64? {
    var number: UInt64 = 0
    for digit in bytes[start..<position] {
      let (tens, overflows) = number.multipliedReportingOverflow(by: 10)
      let (sum, isBeyond) = tens.addingReportingOverflow(UInt64(digit - UInt8(ascii: "0")))
      guard !overflows, !isBeyond else { return nil }
      number = sum
    }
    return number
  }

  /// Skips digits. Returns true if there was at least one.
  mutating func skipDigits() -> Bool {
    let start = position
    while position < bytes.count, bytes[position].isASCIIDigit { position += 1 }
    return position > start
  }

  /// Skips a fraction and an exponent. Returns true if there was either.
  private mutating func skipFractionAndExponent() throws(JSONError) -> Bool {
    let start = position
    if takes("."), !skipDigits() { throw error("a digit must follow the point") }
    if takes("e") || takes("E") {
      if !takes("+") { _ = takes("-") }
      guard skipDigits() else { throw error("an exponent needs a digit") }
    }
    return position > start
  }
}

/// A dialect of JSON text: the rules in which its parsers differ.
protocol JSONDialect {
  /// Returns the value of a number that was not read as a 64-bit integer; `double` is the double nearest to `text`.
  static func number(_ double: Double, of text: @autoclosure () -> String) -> Value

  /// Returns the value that an object stands for, given the name of its first member. The parser stands before that
  /// member's value, and after it on return. Nil for an ordinary object; then nothing has been read.
  static func parseMarked(_ name: String, _ parser: inout JSONParser<Self>) throws(JSONError) -> Value?
}

/// JSON as RFC 8259 defines it and clients send it.
enum PlainJSON: JSONDialect {
  /// Returns the double if it is not whole or beyond the integers, so that it is not taken for an integer, or if the
  /// text is exactly the decimal that the double stands for. Otherwise returns the 64-bit integer that the text denotes
  /// exactly, or `rounded`.
  static func number(_ double: Double, of text: @autoclosure () -> String) -> Value {
    guard double.magnitude <= 0x1p63, double.rounded() == double else { return .number(double) }
    let text = text()
    // Each decimal below 10^15 with at most 15 digits has a double of its own.
    if double != 0, double.magnitude < 1e15, text.utf8.count <= 15 { return .number(double) }
    guard let decimal = ShortestDecimal(parsing: text) else { return .rounded(double) }
    if decimal == ShortestDecimal(double) { return .number(double) }
    return decimal.integer.map(Value.integer) ?? .rounded(double)
  }

  static func parseMarked(_ name: String, _ parser: inout JSONParser<PlainJSON>) throws(JSONError) -> Value? { nil }
}

/// The error for a text that is not JSON, or not JSON that the model can hold.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The mistake, as a clause: `a member name must be a string`.
  public let reason: String
  /// The number of bytes of the text before the mistake.
  public let offset: Int
  /// True if the text is JSON but has a number beyond the range of a double, which no value can hold.
  public let isOutOfRange: Bool

  /// Creates an error for a mistake at a place.
  public init(reason: String, offset: Int, isOutOfRange: Bool = false) {
    self.reason = reason
    self.offset = offset
    self.isOutOfRange = isOutOfRange
  }

  /// The reason with its place.
  public var description: String { "\(reason) (byte \(offset))" }
}
