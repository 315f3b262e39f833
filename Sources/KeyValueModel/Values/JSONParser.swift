import Expressions

/// A reader of JSON text (RFC 8259) that is stricter than Foundation's and exact: an object that names a member twice
/// is refused, whole numbers keep all 64 bits, and nesting is bounded.
struct JSONParser {
  let bytes: UnsafeBufferPointer<UInt8>
  /// How many bytes have been read.
  private(set) var position = 0
  private var depth = 0
  private let depthLimit: Int
  /// Whether the text is one of the store's own, which have forms for what JSON cannot say: see `ExactTextMark`.
  private let isExact: Bool

  init(_ bytes: UnsafeBufferPointer<UInt8>, depthLimit: Int, isExact: Bool = false) {
    self.bytes = bytes
    self.depthLimit = depthLimit
    self.isExact = isExact
  }

  /// The one value of the text, with nothing but white space around it.
  mutating func parseText() throws(JSONError) -> Value {
    let value = try parseValue()
    skipWhiteSpace()
    guard position == bytes.count else { throw error("something follows the value") }
    return value
  }

  func error(_ reason: String) -> JSONError {
    JSONError(reason: reason, offset: position)
  }

  mutating func skipWhiteSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x0A, 0x0D, 0x09: position += 1
      default: return
      }
    }
  }

  mutating func parseValue() throws(JSONError) -> Value {
    skipWhiteSpace()
    guard position < bytes.count else { throw error("the text ends where a value should be") }
    switch bytes[position] {
    case UInt8(ascii: "{"): return try nested { parser throws(JSONError) in try parser.parseObject() }
    case UInt8(ascii: "["): return try nested { parser throws(JSONError) in try parser.parseArray() }
    case UInt8(ascii: "\""): return .string(try parseString())
    case UInt8(ascii: "t"): return try parseWord("true", .bool(true))
    case UInt8(ascii: "f"): return try parseWord("false", .bool(false))
    case UInt8(ascii: "n"): return try parseWord("null", .null)
    default: return try parseNumber()
    }
  }

  private mutating func nested(
    _ parse: (inout JSONParser) throws(JSONError) -> Value
  ) throws(JSONError) -> Value {
    guard depth < depthLimit else { throw error("nested deeper than \(depthLimit) levels") }
    depth += 1
    position += 1
    let value = try parse(&self)
    depth -= 1
    return value
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

  /// Goes on by a byte, which must be there.
  mutating func advance() { position += 1 }

  /// Whether `byte` comes next.
  func isNext(_ byte: UInt8) -> Bool { position < bytes.count && bytes[position] == byte }

  /// Consumes `byte` if it comes next, or says false.
  mutating func takes(_ byte: UInt8) -> Bool {
    guard isNext(byte) else { return false }
    position += 1
    return true
  }

  /// Consumes `byte` after white space, or says false.
  private mutating func consume(_ byte: UInt8) -> Bool {
    skipWhiteSpace()
    guard position < bytes.count, bytes[position] == byte else { return false }
    position += 1
    return true
  }

  private mutating func parseArray() throws(JSONError) -> Value {
    var elements: [Value] = []
    if consume(UInt8(ascii: "]")) { return .array(elements) }
    while true {
      elements.append(try parseValue())
      if consume(UInt8(ascii: "]")) { return .array(elements) }
      guard consume(UInt8(ascii: ",")) else { throw error("a ',' or ']' is missing") }
    }
  }

  private mutating func parseObject(mayBeMarked: Bool = true) throws(JSONError) -> Value {
    var members = JSONMembers()
    if consume(UInt8(ascii: "}")) { return .object(JSONObject(members)) }
    while true {
      skipWhiteSpace()
      guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else {
        throw error("a member name must be a string")
      }
      let start = position
      let name = try parseString()
      guard consume(UInt8(ascii: ":")) else { throw error("a ':' is missing") }
      if isExact, mayBeMarked, members.isEmpty, name.hasExactTextMark {
        let value = try parseMarked(name)
        guard consume(UInt8(ascii: "}")) else { throw error("a '}' is missing") }
        return value
      }
      let value = try parseValue()
      guard members.append(name, value) else {
        throw JSONError(reason: "the member '\(name)' is there twice", offset: start)
      }
      if consume(UInt8(ascii: "}")) { return .object(JSONObject(members)) }
      guard consume(UInt8(ascii: ",")) else { throw error("a ',' or '}' is missing") }
    }
  }

  /// The object that begins here, also where its first member looks like a mark.
  mutating func parseMarkless() throws(JSONError) -> Value {
    try nested { parser throws(JSONError) in try parser.parseObject(mayBeMarked: false) }
  }

  /// What stands in an exact text for something that JSON has no form for, behind its name.
  private mutating func parseMarked(_ name: String) throws(JSONError) -> Value {
    switch ExactTextMark(rawValue: name) {
    case .reference: return .reference(try parseReference())
    case .number:
      let text = try parseQuoted()
      guard let number = Double(text), !number.isFinite else { throw error("a marked number must not be finite") }
      return .number(number)
    case .members: return .members(try parseMarkedMembers())
    case .object:
      guard isNext(UInt8(ascii: "{")) else { throw error("a '{' is missing") }
      return try parseMarkless()
    case nil: throw error("'\(name)' marks nothing")
    }
  }
}

// MARK: - Strings

extension JSONParser {
  mutating func parseString() throws(JSONError) -> String {
    position += 1
    let start = position
    while position < bytes.count, bytes[position] != UInt8(ascii: "\""), bytes[position] != UInt8(ascii: "\\") {
      guard bytes[position] >= 0x20 else { throw error("a control character in a string must be escaped") }
      position += 1
    }
    guard position < bytes.count else { throw error("a string does not end") }
    guard bytes[position] == UInt8(ascii: "\\") else {
      let text = try decoded(bytes[start..<position])
      position += 1
      return text
    }
    return try parseEscapedString(from: start)
  }

  private func decoded(_ utf8: some Sequence<UInt8>) throws(JSONError) -> String {
    guard let text = String(validating: utf8, as: UTF8.self) else { throw error("a string is not valid UTF-8") }
    return text
  }

  private mutating func parseEscapedString(from start: Int) throws(JSONError) -> String {
    var buffer = Array(bytes[start..<position])
    while position < bytes.count {
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
    guard position < bytes.count else { throw error("a string does not end") }
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
    guard (0xD800..<0xDC00).contains(first), position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"),
      bytes[position + 1] == UInt8(ascii: "u")
    else { throw error("half of a surrogate pair") }
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
}

// MARK: - Numbers

extension JSONParser {
  private mutating func parseNumber() throws(JSONError) -> Value {
    let start = position
    if isNext(UInt8(ascii: "-")) { position += 1 }
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
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    guard let number = Double(text), number.isFinite else { throw error("a number is beyond the range of a double") }
    return isExact ? .number(number) : .number(number, of: text)
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
    if takes(UInt8(ascii: ".")), !skipDigits() { throw error("a digit must follow the point") }
    if takes(UInt8(ascii: "e")) || takes(UInt8(ascii: "E")) {
      if !takes(UInt8(ascii: "+")) { _ = takes(UInt8(ascii: "-")) }
      guard skipDigits() else { throw error("an exponent wants a digit") }
    }
    return position > start
  }
}

extension Value {
  /// The value of a number that is written as `text`, `number` being the double next to it. It is that double where it
  /// is not whole, so that no integer is taken for it, or where the text says what the double stands for; else the
  /// integer of 64 bits that the text says exactly, or `rounded`.
  fileprivate static func number(_ number: Double, of text: String) -> Value {
    guard number.magnitude <= 0x1p63, number.rounded() == number else { return .number(number) }
    // Of at most 15 digits, each decimal below 10^15 has a double of its own.
    if number != 0, number.magnitude < 1e15, text.utf8.count <= 15 { return .number(number) }
    guard let decimal = ShortestDecimal(parsing: text) else { return .rounded(number) }
    if decimal == ShortestDecimal(number) { return .number(number) }
    return decimal.integer.map(Value.integer) ?? .rounded(number)
  }
}
