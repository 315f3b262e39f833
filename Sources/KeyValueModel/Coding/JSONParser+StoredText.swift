/// Reading the store's own texts, whose form is known beforehand and which have white space only where a value begins.
extension JSONParser {
  /// How deep values nest in a store's texts: what a request may send is 64 levels deep, and marks may double that.
  static var storedDepthLimit: Int { 256 }

  /// Consumes `byte`.
  mutating func expect(_ byte: UInt8) throws(JSONError) {
    guard takes(byte) else { throw error("a '\(Character(Unicode.Scalar(byte)))' is missing") }
  }

  /// The end of the text.
  func expectEnd() throws(JSONError) {
    guard position == bytes.count else { throw error("something follows the value") }
  }

  /// A string with its quotation marks.
  mutating func parseQuoted() throws(JSONError) -> String {
    guard isNext(UInt8(ascii: "\"")) else { throw error("a string is missing") }
    return try parseString()
  }

  /// A reference.
  mutating func parseReference() throws(JSONError) -> Reference {
    let start = position
    let text = try parseQuoted()
    guard let reference = Reference(text) else {
      throw JSONError(reason: "'\(text)' is no reference", offset: start)
    }
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

  /// The places of members.
  mutating func parseIndexes() throws(JSONError) -> [Int] {
    try parseList { parser throws(JSONError) in
      guard case .integer(let number) = try parser.parseValue(), let index = Int(exactly: number) else {
        throw parser.error("a place must be a whole number")
      }
      return index
    }
  }

  /// An array, whose elements `element` reads.
  mutating func parseList<Element>(
    _ element: (inout JSONParser) throws(JSONError) -> Element
  ) throws(JSONError) -> [Element] {
    try expect(UInt8(ascii: "["))
    var elements: [Element] = []
    if takes(UInt8(ascii: "]")) { return elements }
    while true {
      elements.append(try element(&self))
      if takes(UInt8(ascii: "]")) { return elements }
      guard takes(UInt8(ascii: ",")) else { throw error("a ',' or ']' is missing") }
    }
  }

  /// An object with exact values, whatever its first member is called.
  mutating func parseBody() throws(JSONError) -> JSONObject {
    let start = position
    guard isNext(UInt8(ascii: "{")), case .object(let object) = try parseMarkless() else {
      throw JSONError(reason: "an object is missing", offset: start)
    }
    return object
  }

  /// What `ExactTextMark.members` marks.
  mutating func parseMarkedMembers() throws(JSONError) -> MemberList {
    try expect(UInt8(ascii: "["))
    guard case .bool(let isOrdered) = try parseValue() else { throw error("true or false is missing") }
    try expect(UInt8(ascii: ","))
    let members = try parseList { parser throws(JSONError) in try parser.parseValue() }
    try expect(UInt8(ascii: "]"))
    return MemberList(members, isOrdered: isOrdered)
  }
}
