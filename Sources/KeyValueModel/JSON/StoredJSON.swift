/// The dialect of JSON in which a store writes values, so that it reads back exactly the same values. A value that JSON
/// has no form for becomes an object with one member, whose name marks it. Clients neither send nor receive marked
/// values.
enum StoredJSON: JSONDialect {
  /// The member names that mark a value.
  fileprivate enum Mark: String {
    /// A reference, which a plain string would not be: `{"@@reference":"Account/1"}`.
    case reference = "@@reference"
    /// A double that is not finite, which a request cannot hold but a caller in this process can: `{"@@number":"inf"}`.
    case number = "@@number"
    /// A collection: whether it is ordered, and its members: `{"@@members":[true,[1,2]]}`.
    case members = "@@members"
    /// An object whose own first member has a name that looks like a mark: `{"@@object":{"@@number":1}}`.
    case object = "@@object"
  }

  /// The beginning of a member of a collection that an operation creates in place. It is not a value and has no mark.
  static let madeMember: StaticString = "{\"@@made\":["

  /// Returns true if an object whose first member has this name could be taken for a marked value.
  fileprivate static func isMark(_ name: String) -> Bool { name.utf8.starts(with: "@@".utf8) }

  /// Returns a double: all numbers with a fraction or an exponent are doubles, and all others are written without.
  static func number(_ double: Double, of text: @autoclosure () -> String) -> Value { .number(double) }

  static func parseMarked(_ name: String, _ parser: inout JSONParser<StoredJSON>) throws(JSONError) -> Value? {
    guard isMark(name) else { return nil }
    switch Mark(rawValue: name) {
    case .reference: return .reference(try parser.parseReference())
    case .number:
      let text = try parser.parseQuoted()
      guard let number = Double(text), !number.isFinite else {
        throw parser.error("a marked number must not be finite")
      }
      return .number(number)
    case .members:
      try parser.expect("[")
      guard case .bool(let isOrdered) = try parser.parseValue() else { throw parser.error("true or false is missing") }
      try parser.expect(",")
      let members = try parser.parseList { parser throws(JSONError) in try parser.parseValue() }
      try parser.expect("]")
      return .members(MemberList(members, isOrdered: isOrdered))
    case .object:
      guard parser.isNext("{") else { throw parser.error("a '{' is missing") }
      return try parser.parseObject(mayBeMarked: false)
    case nil: throw parser.error("'\(name)' is not a known mark")
    }
  }
}

/// The error for a stored text that cannot be read back: it was changed, or written for another schema.
package typealias StoredTextError = JSONError

/// A parser of the store's own texts.
typealias StoredTextParser = JSONParser<StoredJSON>

/// Parts of texts whose form is known beforehand, and which have white space only before a value.
extension JSONParser where Dialect == StoredJSON {
  /// Creates a parser of `bytes`. A request may nest 64 levels deep, and marks may double that.
  init(_ bytes: UnsafeBufferPointer<UInt8>) { self.init(bytes, depthLimit: 256) }

  /// Consumes a character, or throws if it does not come next.
  mutating func expect(_ character: Unicode.Scalar) throws(JSONError) {
    guard takes(character) else { throw error("a '\(character)' is missing") }
  }

  /// Throws unless the end of the text is reached.
  func expectEnd() throws(JSONError) {
    guard isAtEnd else { throw error("unexpected text after the value") }
  }

  /// Parses a string with its quotation marks.
  mutating func parseQuoted() throws(JSONError) -> String {
    guard isNext("\"") else { throw error("a string is missing") }
    return try parseString()
  }

  /// Parses a word of an enumeration; `reason` returns the message for any other word.
  mutating func parseWord<Word: RawRepresentable<String>>(_ reason: (String) -> String) throws(JSONError) -> Word {
    let start = position
    let text = try parseQuoted()
    guard let word = Word(rawValue: text) else { throw JSONError(reason: reason(text), offset: start) }
    return word
  }

  /// Parses a reference.
  mutating func parseReference() throws(JSONError) -> Reference {
    let start = position
    let text = try parseQuoted()
    guard let reference = Reference(text) else {
      throw JSONError(reason: "'\(text)' is not a reference", offset: start)
    }
    return reference
  }

  /// Parses an unsigned 64-bit integer.
  mutating func parseUnsigned() throws(JSONError) -> UInt64 {
    let start = position
    guard skipDigits() else { throw error("a whole number is missing") }
    guard let number = wholeNumber(from: start) else {
      throw JSONError(reason: "a number has more than 64 bits", offset: position - 1)
    }
    return number
  }

  /// Parses an array whose elements `element` parses.
  mutating func parseList<Element>(
    _ element: (inout JSONParser) throws(JSONError) -> Element
  ) throws(JSONError) -> [Element] {
    try expect("[")
    var elements: [Element] = []
    if takes("]") { return elements }
    while true {
      elements.append(try element(&self))
      if takes("]") { return elements }
      guard takes(",") else { throw error("a ',' or ']' is missing") }
    }
  }

  /// Consumes null if it comes next. Returns false for anything else, and throws for a word that only begins like null.
  mutating func takesNull() throws(JSONError) -> Bool {
    guard isNext("n") else { return false }
    guard takesWord("null") else { throw error("null is missing") }
    return true
  }

  /// Consumes `word` if exactly this comes next; returns false otherwise.
  mutating func takesWord(_ word: StaticString) -> Bool {
    let length = word.utf8CodeUnitCount
    guard bytes.count - position >= length else { return false }
    for index in 0..<length where bytes[position + index] != word.utf8Start[index] { return false }
    skip(length)
    return true
  }
}

/// The form in which a store writes values. In both forms doubles have a fraction or an exponent, so that they are read
/// back as doubles.
enum StoredValueForm {
  /// Reads back as exactly the same value: a value that JSON would write like another one is marked
  /// (`StoredJSON.Mark`).
  case exact
  /// Plain JSON for other programs: references are strings, collections are arrays, and doubles that are not finite are
  /// null.
  case plain
}

extension Value {
  /// Appends the value as compact JSON.
  func appendStoredText(_ form: StoredValueForm, to bytes: inout [UInt8]) {
    switch (self, form) {
    case (.null, _), (.bool, _), (.integer, _), (.string, _), (.reference, .plain): appendJSON(to: &bytes)
    case (.number(let number), _) where number.isFinite, (.rounded(let number), _):
      bytes.append(contentsOf: number.description.utf8)
    case (.number(let number), .exact): Self.append(.number, .string(number.description), to: &bytes)
    case (.number, .plain): Value.null.appendJSON(to: &bytes)
    case (.reference(let reference), .exact): Self.append(.reference, .string(reference.text), to: &bytes)
    case (.array(let elements), _): bytes.appendList(elements) { $0.appendStoredText(form, to: &$1) }
    case (.members(let list), .plain): bytes.appendList(list) { $0.appendStoredText(form, to: &$1) }
    case (.members(let list), .exact):
      bytes.appendMark(.members)
      bytes.append(contentsOf: list.isOrdered ? "[true,".utf8 : "[false,".utf8)
      bytes.appendList(list) { $0.appendStoredText(form, to: &$1) }
      bytes.append(contentsOf: "]}".utf8)
    case (.object(let object), _):
      let isMarked = form == .exact && object.members.first.map { StoredJSON.isMark($0.key) } == true
      if isMarked { bytes.appendMark(.object) }
      object.appendStoredText(form, to: &bytes)
      if isMarked { bytes.append(UInt8(ascii: "}")) }
    }
  }

  private static func append(_ mark: StoredJSON.Mark, _ value: Value, to bytes: inout [UInt8]) {
    bytes.appendMark(mark)
    value.appendJSON(to: &bytes)
    bytes.append(UInt8(ascii: "}"))
  }
}

extension JSONObject {
  /// Appends the object without a mark of its own. It reads back exactly only where nothing but an object is possible.
  func appendStoredText(_ form: StoredValueForm, to bytes: inout [UInt8]) {
    bytes.appendObject(members) { $0.appendStoredText(form, to: &$1) }
  }
}

extension [UInt8] {
  fileprivate mutating func appendMark(_ mark: StoredJSON.Mark) {
    append(contentsOf: "{\"".utf8)
    append(contentsOf: mark.rawValue.utf8)
    append(contentsOf: "\":".utf8)
  }
}
