extension Value {
  /// The value of a JSON text in UTF-8 (RFC 8259). Refuses duplicate member names, numbers that no double can hold, and
  /// nesting over `depthLimit` levels, which are 64 unless said otherwise: an answer of a server nests deeper than what
  /// was sent to it.
  public init(json bytes: [UInt8], depthLimit: Int = 64) throws(JSONError) {
    let result = bytes.withUnsafeBufferPointer { buffer -> Result<Value, JSONError> in
      Result { () throws(JSONError) in
        var parser = JSONParser<PlainJSON>(buffer, depthLimit: depthLimit)
        return try parser.parseText()
      }
    }
    self = try result.get()
  }

  /// The value of a JSON text.
  public init(json text: String, depthLimit: Int = 64) throws(JSONError) {
    try self.init(json: Array(text.utf8), depthLimit: depthLimit)
  }

  /// The value as compact JSON text.
  public var json: String {
    var bytes: [UInt8] = []
    appendJSON(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends the value as compact JSON in UTF-8.
  public func appendJSON(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes.append(contentsOf: "null".utf8)
    case .bool(let value): bytes.append(contentsOf: value ? "true".utf8 : "false".utf8)
    case .integer(let value): bytes.appendDecimal(value)
    case .number(let value), .rounded(let value): Self.append(value, to: &bytes)
    case .string(let value): bytes.appendJSONString(value)
    case .reference(let value): bytes.appendQuoted(value)
    case .array(let elements): bytes.appendList(elements) { $0.appendJSON(to: &$1) }
    case .members(let list): bytes.appendList(list) { $0.appendJSON(to: &$1) }
    case .object(let object): object.appendJSON(to: &bytes)
    }
  }

  /// Whether JSON has the same for both: zeros of the same sign, and whole numbers whether they are integers or
  /// doubles. The order of an object's members is no matter.
  package func isWrittenAlike(_ other: Value) -> Bool {
    switch (self, other) {
    case (.number(let left), .number(let right)), (.rounded(let left), .rounded(let right)),
      (.number(let left), .rounded(let right)), (.rounded(let left), .number(let right)):
      left == right && left.sign == right.sign
    case (.integer(let integer), .number(let number)), (.number(let number), .integer(let integer)):
      number.wholeNumber == integer
    case (.array(let left), .array(let right)):
      left.count == right.count && zip(left, right).allSatisfy { $0.isWrittenAlike($1) }
    case (.object(let left), .object(let right)):
      left.members.count == right.members.count
        && left.members.allSatisfy { name, value in right[name].map(value.isWrittenAlike) ?? false }
    default: self == other
    }
  }

  /// The value that its JSON text is read as: a double that is written as a whole number is that integer. Of two that
  /// are written alike it is the same, but for the order of an object's members.
  var asWritten: Value {
    switch self {
    case .number(let number), .rounded(let number): number.wholeNumber.map(Value.integer) ?? self
    case .array(let elements): .array(elements.map(\.asWritten))
    case .object(let object): .object(object.asWritten)
    default: self
    }
  }

  /// The shortest text that gives the same double again, without the `.0` that JSON does not need.
  private static func append(_ number: Double, to bytes: inout [UInt8]) {
    if let whole = number.wholeNumber { return bytes.appendDecimal(whole) }
    bytes.append(contentsOf: number.description.utf8)
  }
}

extension Double {
  /// The whole number as which JSON has the double; nil where it has a fraction or an exponent. -0.0 keeps its `.0`:
  /// many readers take `-0` for an integer, which has no sign.
  fileprivate var wholeNumber: Int64? {
    // Doubles of this size hold every whole number.
    guard magnitude < 1e15, rounded() == self, !(self == 0 && sign == .minus) else { return nil }
    return Int64(self)
  }
}

extension JSONObject {
  /// The object with each member as it is written.
  fileprivate var asWritten: JSONObject {
    var object = JSONObject()
    for (name, value) in members { object[name] = value.asWritten }
    return object
  }

  /// Appends the object as compact JSON in UTF-8, members in their order.
  public func appendJSON(to bytes: inout [UInt8]) { bytes.appendObject(members) { $0.appendJSON(to: &$1) } }
}

extension [UInt8] {
  /// Appends a whole number in decimal digits.
  public mutating func appendDecimal(_ value: some FixedWidthInteger) {
    append(contentsOf: String(value).utf8)
  }

  /// Appends a JSON string with its quotation marks; escapes what RFC 8259 §7 demands and nothing else.
  public mutating func appendJSONString(_ text: String) {
    var text = text
    text.withUTF8 { appendJSONString(UnsafeRawBufferPointer($0)) }
  }

  /// The same for the bytes of a text.
  mutating func appendJSONString(_ bytes: UnsafeRawBufferPointer) {
    append(UInt8(ascii: "\""))
    var clean = 0
    while let index = Self.firstToEscape(in: bytes, from: clean) {
      append(contentsOf: bytes[clean..<index])
      appendEscape(bytes[index])
      clean = index + 1
    }
    append(contentsOf: bytes[clean...])
    append(UInt8(ascii: "\""))
  }

  /// Where the next byte is that a JSON string must not have as it is; nil where there is none. Eight bytes are looked
  /// at together: a byte less a bound borrows from its highest bit where it is below it.
  private static func firstToEscape(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
    let (ones, highs): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
    var index = start
    while index + 8 <= bytes.count {
      let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      let (quotes, backslashes) = (word ^ (ones &* 0x22), word ^ (ones &* 0x5C))
      let found =
        ((word &- ones &* 0x20) & ~word) | ((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes)
      if found & highs != 0 { break }
      index += 8
    }
    return bytes[index...].firstIndex { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C }
  }

  /// Appends an array, whose elements `append` writes.
  mutating func appendList<Elements: Sequence>(
    _ elements: Elements, _ append: (Elements.Element, inout [UInt8]) -> Void
  ) {
    self.append(UInt8(ascii: "["))
    var isFirst = true
    for element in elements {
      if !isFirst { self.append(UInt8(ascii: ",")) }
      isFirst = false
      append(element, &self)
    }
    self.append(UInt8(ascii: "]"))
  }

  mutating func appendComma() { append(UInt8(ascii: ",")) }

  /// Appends a comma and the name of a member, which needs no escapes, with its colon.
  mutating func appendName(_ name: String) {
    append(contentsOf: ",\"".utf8)
    append(contentsOf: name.utf8)
    append(contentsOf: "\":".utf8)
  }

  /// Appends a reference as a string; its characters need no escapes.
  mutating func appendQuoted(_ reference: Reference) {
    append(UInt8(ascii: "\""))
    append(contentsOf: reference.text.utf8)
    append(UInt8(ascii: "\""))
  }

  /// Appends an object, whose values `append` writes.
  mutating func appendObject(_ members: JSONMembers, _ append: (Value, inout [UInt8]) -> Void) {
    self.append(UInt8(ascii: "{"))
    var isFirst = true
    for (name, value) in members {
      if !isFirst { appendComma() }
      isFirst = false
      appendJSONString(name)
      self.append(UInt8(ascii: ":"))
      append(value, &self)
    }
    self.append(UInt8(ascii: "}"))
  }

  private mutating func appendEscape(_ byte: UInt8) {
    append(UInt8(ascii: "\\"))
    switch byte {
    case 0x22, 0x5C: append(byte)
    case 0x08: append(UInt8(ascii: "b"))
    case 0x0C: append(UInt8(ascii: "f"))
    case 0x0A: append(UInt8(ascii: "n"))
    case 0x0D: append(UInt8(ascii: "r"))
    case 0x09: append(UInt8(ascii: "t"))
    default:
      let digits = Array("0123456789abcdef".utf8)
      append(contentsOf: "u00".utf8)
      append(digits[Int(byte >> 4)])
      append(digits[Int(byte & 15)])
    }
  }
}
