/// The text of a transaction in a journal: `["writer",[["set","Account/1","balance",120],…],"sub"]`, with null for no
/// writer, and without the last member if no identity wrote it. It is the same for the same transaction, and the
/// preconditions, which held, are not in it.
extension Transaction {
  /// Appends the text, from which exactly these operations come back. O(n) in its length.
  package func appendJournalText(to bytes: inout [UInt8]) {
    if let journalText { return bytes.append(contentsOf: journalText) }
    bytes.append(UInt8(ascii: "["))
    if let writer {
      bytes.appendJSONString(writer)
    } else {
      bytes.append(contentsOf: "null".utf8)
    }
    bytes.appendComma()
    bytes.appendList(operations) { $0.appendJournalText(to: &$1) }
    if let author {
      bytes.appendComma()
      bytes.appendJSONString(author)
    }
    bytes.append(UInt8(ascii: "]"))
  }

  /// The transaction of a text that `appendJournalText` wrote; throws for everything else, also where there is more in
  /// it than this version knows.
  package init(journalText bytes: [UInt8]) throws(StoredTextError) {
    self = try bytes.withUnsafeBufferPointer { buffer throws(StoredTextError) in
      try Transaction(journalText: buffer)
    }
  }

  /// The same for bytes that belong to the caller, which are read and not kept.
  package init(journalText bytes: UnsafeBufferPointer<UInt8>) throws(StoredTextError) {
    var parser = StoredTextParser(bytes)
    self = try parser.parseTransaction()
    try parser.expectEnd()
  }
}

extension JSONParser where Dialect == StoredJSON {
  fileprivate mutating func parseTransaction() throws(JSONError) -> Transaction {
    try expect("[")
    let writer = try takesNull() ? nil : parseQuoted()
    try expect(",")
    let operations = try parseList { parser throws(JSONError) in try parser.parseOperation() }
    var transaction = Transaction(operations, writer: writer)
    if isNext(",") {
      try expect(",")
      transaction.author = try parseQuoted()
    }
    try expect("]")
    return transaction
  }

  private mutating func parseOperation() throws(JSONError) -> Operation {
    try expect("[")
    if takesWord("\"set\",") { return try parseSetting() }
    let kind: OperationKind = try parseWord { "there is no operation '\($0)'" }
    try expect(",")
    let object = try parseReference()
    var operands: [Operand] = []
    for form in kind.operands {
      try expect(",")
      operands.append(try parseOperand(form))
    }
    try expect("]")
    return Operation(kind, object, operands)
  }

  /// What stands behind `["set",`: most operations are such, and this one takes no list of operands.
  private mutating func parseSetting() throws(JSONError) -> Operation {
    let object = try parseReference()
    try expect(",")
    let keyPath = try parseQuoted()
    try expect(",")
    let value = try parseValue()
    try expect("]")
    return .set(object, keyPath: keyPath, value)
  }

  private mutating func parseOperand(_ form: OperandForm) throws(JSONError) -> Operand {
    switch form {
    case .keyPath, .key: return .text(try parseQuoted())
    case .body: return .body(try parseBody())
    case .value: return .value(try parseValue())
    case .values: return .values(try parseList { parser throws(JSONError) in try parser.parseValue() })
    case .members: return .members(try parseList { parser throws(JSONError) in try parser.parseMember() })
    case .optionalIndexes: return .indexes(try takesNull() ? nil : parseIndexes())
    case .indexes: return .indexes(try parseIndexes())
    case .mutation: return .mutation(try parseWord { "there is no set operation '\($0)'" })
    case .patch:
      let operations = try parseList { parser throws(JSONError) in try parser.parsePatchOperation() }
      return .patch(JSONPatch(operations: operations))
    case .revision: return .revision(try parseUnsigned())
    case .lifetime: return .lifetime(try parseLifetime())
    }
  }

  private mutating func parseMember() throws(JSONError) -> NewMember {
    guard takesWord(StoredJSON.madeMember) else { return .value(try parseValue()) }
    let reference = try parseReference()
    try expect(",")
    let body = try parseBody()
    try expect("]")
    try expect("}")
    return .object(reference, body)
  }

  /// An object with exact values, whatever its first member is called.
  private mutating func parseBody() throws(JSONError) -> JSONObject {
    guard isNext("{"), case .object(let object) = try parseObject(mayBeMarked: false) else {
      throw error("an object is missing")
    }
    return object
  }

  private mutating func parseIndexes() throws(JSONError) -> [Int] {
    try parseList { parser throws(JSONError) in
      guard case .integer(let number) = try parser.parseValue(), let index = Int(exactly: number) else {
        throw parser.error("a place must be a whole number")
      }
      return index
    }
  }

  private mutating func parsePatchOperation() throws(JSONError) -> JSONPatch.Operation {
    try expect("[")
    let kind: JSONPatch.Operation.Kind = try parseWord { "a patch has no operation '\($0)'" }
    let source = kind.hasSource ? try parsePointer() : nil
    let path = try parsePointer()
    if kind.hasValue { try expect(",") }
    let value = kind.hasValue ? try parseValue() : nil
    guard let operation = JSONPatch.Operation(kind, from: source, path, value) else {
      throw error("a value cannot be moved into itself")
    }
    try expect("]")
    return operation
  }

  private mutating func parsePointer() throws(JSONError) -> JSONPointer {
    try expect(",")
    let start = position
    let text = try parseQuoted()
    guard let pointer = JSONPointer(text) else {
      throw JSONError(reason: "'\(text)' is no JSON pointer", offset: start)
    }
    return pointer
  }
}
