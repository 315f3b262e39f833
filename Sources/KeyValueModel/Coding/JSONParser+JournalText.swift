/// Reading what `Transaction.appendJournalText` wrote.
extension JSONParser {
  /// What begins a member that is made in place.
  static var madeMember: String { "{\"@@made\":[" }

  /// A transaction.
  mutating func parseTransaction() throws(JSONError) -> Transaction {
    try expect(UInt8(ascii: "["))
    let writer = isNext(UInt8(ascii: "n")) ? nil : try parseQuoted()
    if writer == nil { try parseNull() }
    try expect(UInt8(ascii: ","))
    let operations = try parseList { parser throws(JSONError) in try parser.parseOperation() }
    try expect(UInt8(ascii: "]"))
    return Transaction(operations, writer: writer)
  }

  private mutating func parseOperation() throws(JSONError) -> Operation {
    try expect(UInt8(ascii: "["))
    let start = position
    let name = try parseQuoted()
    guard let tag = OperationTag(rawValue: name) else {
      throw JSONError(reason: "there is no operation '\(name)'", offset: start)
    }
    try expect(UInt8(ascii: ","))
    let object = try parseReference()
    let operation = try parseOperation(tag, on: object)
    try expect(UInt8(ascii: "]"))
    return operation
  }

  private mutating func parseOperation(_ tag: OperationTag, on object: Reference) throws(JSONError) -> Operation {
    guard tag != .delete else { return .delete(object) }
    try expect(UInt8(ascii: ","))
    switch tag {
    case .create: return .create(object, try parseBody())
    case .put: return .put(object, try parseBody())
    case .patch: return .patch(object, try parseBody())
    case .jsonPatch:
      let operations = try parseList { parser throws(JSONError) in try parser.parsePatchOperation() }
      return .jsonPatch(object, JSONPatch(operations: operations))
    case .require: return .require(object, try parseUnsigned())
    default: return try parseOperation(tag, on: object, path: try parseQuoted())
    }
  }

  private mutating func parseOperation(
    _ tag: OperationTag, on object: Reference, path: String
  ) throws(JSONError) -> Operation {
    switch tag {
    case .willChange: return .willChange(object, key: path)
    case .didChange: return .didChange(object, key: path)
    default: try expect(UInt8(ascii: ","))
    }
    switch tag {
    case .set: return .set(object, keyPath: path, try parseValue())
    case .insert:
      let members = try parseMembers()
      try expect(UInt8(ascii: ","))
      guard isNext(UInt8(ascii: "n")) else { return .insert(object, keyPath: path, members, at: try parseIndexes()) }
      try parseNull()
      return .insert(object, keyPath: path, members, at: nil)
    case .removeIndexes: return .removeIndexes(object, keyPath: path, try parseIndexes())
    case .removeMembers:
      let members = try parseList { parser throws(JSONError) in try parser.parseValue() }
      return .removeMembers(object, keyPath: path, members)
    case .replace:
      let indexes = try parseIndexes()
      try expect(UInt8(ascii: ","))
      return .replace(object, keyPath: path, at: indexes, try parseMembers())
    default:
      let start = position
      let name = try parseQuoted()
      guard let mutation = SetMutation(rawValue: name) else {
        throw JSONError(reason: "there is no set operation '\(name)'", offset: start)
      }
      try expect(UInt8(ascii: ","))
      return .mutateSet(object, keyPath: path, mutation, try parseMembers())
    }
  }

  private mutating func parseMembers() throws(JSONError) -> [NewMember] {
    try parseList { parser throws(JSONError) in
      guard parser.takes(Self.madeMember) else { return .value(try parser.parseValue()) }
      let reference = try parser.parseReference()
      try parser.expect(UInt8(ascii: ","))
      let body = try parser.parseBody()
      try parser.expect(UInt8(ascii: "]"))
      try parser.expect(UInt8(ascii: "}"))
      return .object(reference, body)
    }
  }

  private mutating func parseNull() throws(JSONError) {
    guard takes("null") else { throw error("null is missing") }
  }

  /// Consumes `text` if it comes next as it stands, or says false.
  private mutating func takes(_ text: String) -> Bool {
    guard bytes[position...].starts(with: text.utf8) else { return false }
    for _ in text.utf8 { advance() }
    return true
  }
}
