/// The dialect of JSON in which a store keeps values, so that exactly these come back: what JSON has no form for is an
/// object with one member, whose name marks it. Clients neither send nor see it.
enum StoredJSON: JSONDialect {
  /// The names of the members that mark.
  fileprivate enum Mark: String {
    /// The name of an object, where a string would be taken for text: `{"@@reference":"Account/1"}`.
    case reference = "@@reference"
    /// A double that is not finite, which no request can hold but a caller in this process can: `{"@@number":"inf"}`.
    case number = "@@number"
    /// A list of members, behind whether it is ordered: `{"@@members":[true,[1,2]]}`.
    case members = "@@members"
    /// An object whose own first member has a name that looks like a mark: `{"@@object":{"@@number":1}}`.
    case object = "@@object"
  }

  /// What begins a member of a collection that an operation makes in place. It is no value and has no mark.
  static let madeMember: StaticString = "{\"@@made\":["

  /// Whether an object whose first member has this name could be taken for a marked value.
  fileprivate static func isMark(_ name: String) -> Bool { name.utf8.starts(with: "@@".utf8) }

  /// Numbers with a fraction or an exponent are doubles: all others are written without.
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
    case nil: throw parser.error("'\(name)' marks nothing")
    }
  }
}

/// Why a text that a store kept cannot be read back: it was changed, or written for another schema.
package typealias StoredTextError = JSONError

/// A reader of the store's own texts.
typealias StoredTextParser = JSONParser<StoredJSON>

/// Pieces of texts whose form is known beforehand, and which have white space only where a value begins.
extension JSONParser where Dialect == StoredJSON {
  /// A reader of `bytes`. What a request may send nests 64 levels deep, and marks may double that.
  init(_ bytes: UnsafeBufferPointer<UInt8>) { self.init(bytes, depthLimit: 256) }

  /// Consumes a character.
  mutating func expect(_ character: Unicode.Scalar) throws(JSONError) {
    guard takes(character) else { throw error("a '\(character)' is missing") }
  }

  /// The end of the text.
  func expectEnd() throws(JSONError) {
    guard isAtEnd else { throw error("something follows the value") }
  }

  /// A string with its quotation marks.
  mutating func parseQuoted() throws(JSONError) -> String {
    guard isNext("\"") else { throw error("a string is missing") }
    return try parseString()
  }

  /// One of an enumeration's words; `reason` says what is wrong with another one.
  mutating func parseWord<Word: RawRepresentable<String>>(_ reason: (String) -> String) throws(JSONError) -> Word {
    let start = position
    let text = try parseQuoted()
    guard let word = Word(rawValue: text) else { throw JSONError(reason: reason(text), offset: start) }
    return word
  }

  /// A reference.
  mutating func parseReference() throws(JSONError) -> Reference {
    let start = position
    let text = try parseQuoted()
    guard let reference = Reference(text) else { throw JSONError(reason: "'\(text)' is no reference", offset: start) }
    return reference
  }

  /// A whole number of 64 bits without a sign.
  mutating func parseUnsigned() throws(JSONError) -> UInt64 {
    let start = position
    guard skipDigits() else { throw error("a whole number is missing") }
    guard let number = wholeNumber(from: start) else {
      throw JSONError(reason: "a number has more than 64 bits", offset: position - 1)
    }
    return number
  }

  /// An array, whose elements `element` reads.
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

  /// Consumes null where that is next, and says whether it was; throws for what only begins like it.
  mutating func takesNull() throws(JSONError) -> Bool {
    guard isNext("n") else { return false }
    guard takesWord("null") else { throw error("null is missing") }
    return true
  }

  /// Consumes `word` if it comes next as it stands, or says false.
  mutating func takesWord(_ word: StaticString) -> Bool {
    let length = word.utf8CodeUnitCount
    guard bytes.count - position >= length else { return false }
    for index in 0..<length where bytes[position + index] != word.utf8Start[index] { return false }
    skip(length)
    return true
  }
}

/// How a store writes values. Either way doubles have a fraction or an exponent, so that they come back as doubles.
enum StoredValueForm {
  /// Exactly this value comes back: what JSON writes like something else is marked (`StoredJSON.Mark`).
  case exact
  /// Plain JSON for others to read: references are strings, collections arrays, and doubles that are not finite null.
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
  /// Appends the object, without a mark of its own: only where nothing but an object can stand does it come back
  /// exactly.
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
