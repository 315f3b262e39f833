extension Value {
  /// Creates the value of a JSON text in UTF-8 (RFC 8259). Throws for duplicate member names, for numbers beyond the
  /// range of a double, and for nesting over `depthLimit` levels. The default limit is 64; a response of a server nests
  /// deeper than what was sent to it.
  public init(json bytes: [UInt8], depthLimit: Int = 64) throws(JSONError) {
    let result = bytes.withUnsafeBufferPointer { buffer -> Result<Value, JSONError> in
      Result { () throws(JSONError) in
        var parser = JSONParser<PlainJSON>(buffer, depthLimit: depthLimit)
        return try parser.parseText()
      }
    }
    self = try result.get()
  }

  /// Creates the value of a JSON text.
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

  /// Returns true if both values are the same JSON, except for the order of the members of objects: whole numbers count
  /// alike as integers and as doubles, and zeros must have the same sign. A reference and a string are never alike.
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

  /// The value that its JSON text is parsed to: a double that is written as a whole number becomes that integer. Two
  /// values that are written alike give the same, except for the order of an object's members.
  var asWritten: Value {
    switch self {
    case .number(let number), .rounded(let number): number.wholeNumber.map(Value.integer) ?? self
    case .array(let elements): .array(elements.map(\.asWritten))
    case .object(let object): .object(object.asWritten)
    default: self
    }
  }

  /// Appends the shortest text that parses to the same double, without the `.0` that JSON does not need.
  private static func append(_ number: Double, to bytes: inout [UInt8]) {
    if let whole = number.wholeNumber { return bytes.appendDecimal(whole) }
    bytes.append(contentsOf: number.description.utf8)
  }

  // MARK: Within a limit

  /// Appends the value as `appendJSON(to:)` does, until there are more than `limit` bytes. Then it stops soon, and the
  /// appended text is not valid JSON. Returns true if the value was appended completely.
  ///
  /// A list made while reading may contain one value many times without taking memory for it, and is much larger as
  /// JSON.
  @discardableResult
  package func appendJSON(to bytes: inout [UInt8], upTo limit: Int) -> Bool {
    switch self {
    case .array(let elements): return Self.append(elements, to: &bytes, upTo: limit)
    case .members(let list): return Self.append(list, to: &bytes, upTo: limit)
    case .string(var text) where text.utf8.count > limit - bytes.count:
      // One byte more than fits: that is enough to exceed the limit.
      let count = max(0, limit - bytes.count) + 1
      text.withUTF8 { bytes.append(contentsOf: $0.prefix(count)) }
      return false
    case .object(let object): return Self.append(object, to: &bytes, upTo: limit)
    default:
      appendJSON(to: &bytes)
      return bytes.count <= limit
    }
  }

  private static func append(_ object: JSONObject, to bytes: inout [UInt8], upTo limit: Int) -> Bool {
    var isWhole = true
    bytes.appendObject(object.members) { value, bytes in
      isWhole = isWhole && value.appendJSON(to: &bytes, upTo: limit)
    }
    return isWhole && bytes.count <= limit
  }

  private static func append(_ elements: some Sequence<Value>, to bytes: inout [UInt8], upTo limit: Int) -> Bool {
    bytes.append(UInt8(ascii: "["))
    var isFirst = true
    for element in elements {
      if !isFirst { bytes.append(UInt8(ascii: ",")) }
      isFirst = false
      guard element.appendJSON(to: &bytes, upTo: limit) else { return false }
    }
    bytes.append(UInt8(ascii: "]"))
    return bytes.count <= limit
  }

  // MARK: Comparison

  /// Returns true if both are equal as JSON (RFC 6902 §4.6): numbers by their exact numeric value, however they are
  /// written; references as the strings that they are written as; objects regardless of the order of their members.
  /// O(n).
  func isSameJSON(as other: Value) -> Bool {
    switch (self, other) {
    case (.null, .null): return true
    case (.bool(let left), .bool(let right)): return left == right
    case (.rounded(let number), _): return Value.number(number).isSameJSON(as: other)
    case (_, .rounded(let number)): return isSameJSON(as: .number(number))
    case (.integer, .integer), (.integer, .number), (.number, .integer), (.number, .number),
      (.string, .string), (.string, .reference), (.reference, .string), (.reference, .reference):
      return ValueOrder.plain.ordering(of: self, to: other) == .same
    case (.object(let left), .object(let right)):
      guard left.members.count == right.members.count else { return false }
      return left.members.allSatisfy { name, value in right[name].map(value.isSameJSON) ?? false }
    default:
      guard let left = elements, let right = other.elements, left.count == right.count else { return false }
      return zip(left, right).allSatisfy { $0.isSameJSON(as: $1) }
    }
  }

  /// The number of values in this one, including itself, and the number of levels of arrays and objects. O(n).
  var extent: (nodes: Int, depth: Int) {
    switch self {
    case .array(let elements): Self.extent(around: elements)
    case .members(let list): Self.extent(around: list)
    case .object(let object): Self.extent(around: object.members.values)
    default: (1, 0)
    }
  }

  private static func extent(around values: some Sequence<Value>) -> (nodes: Int, depth: Int) {
    var (nodes, depth) = (1, 0)
    for value in values {
      let inner = value.extent
      nodes += inner.nodes
      depth = max(depth, inner.depth)
    }
    return (nodes, depth + 1)
  }
}

extension Double {
  /// The whole number that the double is written as in JSON; nil if it is written with a fraction or an exponent. -0.0
  /// keeps its `.0`: many parsers take `-0` for an integer, which has no sign.
  fileprivate var wholeNumber: Int64? {
    // Below 1e15 every whole number is a double.
    guard magnitude < 1e15, rounded() == self, !(self == 0 && sign == .minus) else { return nil }
    return Int64(self)
  }
}

extension JSONObject {
  /// The object with each member as its JSON text is parsed.
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
  @inlinable public mutating func appendDecimal(_ value: some FixedWidthInteger) {
    if value < 0 { append(UInt8(ascii: "-")) }
    appendDigits(UInt64(value.magnitude))
  }

  @usableFromInline mutating func appendDigits(_ number: UInt64) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var (rest, start) = (number, digits.count)
      repeat {
        start -= 1
        digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
    }
  }

  /// Appends a JSON string with its quotation marks. Escapes what RFC 8259 §7 demands, and the characters beyond ASCII
  /// at which a reader may end a line (U+0085, U+2028, U+2029): the text is sent in lines, as data of an event or as
  /// JSON lines, and some clients split these at such characters.
  public mutating func appendJSONString(_ text: String) {
    var text = text
    text.withUTF8 { appendJSONString(UnsafeRawBufferPointer($0)) }
  }

  /// Appends a JSON string from the UTF-8 bytes of a text, as the function for a `String` does.
  mutating func appendJSONString(_ bytes: UnsafeRawBufferPointer) {
    append(UInt8(ascii: "\""))
    var clean = 0
    while let index = Self.firstToEscape(in: bytes, from: clean) {
      append(contentsOf: bytes[clean..<index])
      clean = index + appendEscape(of: bytes, at: index)
    }
    append(contentsOf: bytes[clean...])
    append(UInt8(ascii: "\""))
  }

  /// The index at which the next character begins that a JSON string must escape; nil if there is none. Eight bytes are
  /// checked together: subtracting a bound from a byte borrows from the byte's highest bit if the byte is below the
  /// bound.
  private static func firstToEscape(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
    let (ones, highs): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
    var index = start
    func marks(_ byte: UInt64, in word: UInt64) -> UInt64 {
      let rest = word ^ (ones &* byte)
      return (rest &- ones) & ~rest
    }
    while index < bytes.count {
      let end = Swift.min(index + 8, bytes.count)
      var isClean = false
      if end - index == 8 {
        let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        var found = ((word &- ones &* 0x20) & ~word) | marks(0x22, in: word) | marks(0x5C, in: word)
        // Most words are ASCII, and most others have no byte that could begin a line break.
        if word & highs != 0 { found |= marks(0xC2, in: word) | marks(0xE2, in: word) }
        isClean = found & highs == 0
      }
      if !isClean, let place = (index..<end).first(where: { isEscaped(in: bytes, at: $0) }) { return place }
      index = end
    }
    return nil
  }

  /// True if a JSON string has an escape in place of the character that begins at `index`.
  private static func isEscaped(in bytes: UnsafeRawBufferPointer, at index: Int) -> Bool {
    let byte = bytes[index]
    return byte < 0x20 || byte == 0x22 || byte == 0x5C
      || (byte == 0xC2 || byte == 0xE2) && lineBreak(in: bytes, at: index) != nil
  }

  /// The escape, without its backslash, of a line break beyond ASCII that begins at `index`, and the number of its
  /// bytes in UTF-8; nil if none begins there.
  private static func lineBreak(
    in bytes: UnsafeRawBufferPointer, at index: Int
  ) -> (escape: StaticString, byteCount: Int)? {
    switch (bytes[index], bytes.count - index) {
    case (0xC2, 2...) where bytes[index + 1] == 0x85: ("u0085", 2)
    case (0xE2, 3...) where bytes[index + 1] == 0x80 && bytes[index + 2] == 0xA8: ("u2028", 3)
    case (0xE2, 3...) where bytes[index + 1] == 0x80 && bytes[index + 2] == 0xA9: ("u2029", 3)
    default: nil
    }
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

  /// Appends the escape of the character that begins at `index`. Returns the number of bytes of the character.
  private mutating func appendEscape(of bytes: UnsafeRawBufferPointer, at index: Int) -> Int {
    append(UInt8(ascii: "\\"))
    if let (escape, byteCount) = Self.lineBreak(in: bytes, at: index) {
      escape.withUTF8Buffer { append(contentsOf: $0) }
      return byteCount
    }
    appendEscape(ofASCII: bytes[index])
    return 1
  }

  private mutating func appendEscape(ofASCII byte: UInt8) {
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
