/// What a stored key holds, and with that how its values are written: in the type of the key where that says enough, so
/// that a to-one is a string and a to-many an array.
enum StoredColumn {
  case attribute(AttributeType)
  case toOne
  case objects(isOrdered: Bool)
  case values(isOrdered: Bool, AttributeType)

  /// The column of a stored key.
  init(_ key: Key) {
    switch key.kind {
    case .attribute(let attribute): self = .attribute(attribute.type)
    case .toOne: self = .toOne
    case .toMany(let toMany):
      switch toMany.member {
      case .object: self = .objects(isOrdered: toMany.isOrdered)
      case .value(let attribute): self = .values(isOrdered: toMany.isOrdered, attribute.type)
      }
    case .computed: preconditionFailure("a computed key is not stored")
    }
  }

  /// Appends a value of the key.
  func append(_ value: Value, to bytes: inout [UInt8]) {
    switch (self, value) {
    case (.toOne, .reference(let reference)): bytes.appendQuoted(reference)
    case (.objects, .members(let list)):
      bytes.appendList(list) { member, bytes in
        if case .reference(let reference) = member {
          bytes.appendQuoted(reference)
        } else {
          member.appendStoredText(.exact, to: &bytes)
        }
      }
    case (.values, .members(let list)): bytes.appendList(list) { $0.appendStoredText(.exact, to: &$1) }
    default: value.appendStoredText(.exact, to: &bytes)
    }
  }
}

extension JSONParser where Dialect == StoredJSON {
  /// A value of a column, `name` being its key's.
  mutating func parseValue(of column: StoredColumn, named name: String) throws(JSONError) -> Value {
    switch column {
    case .attribute(let type): return try parseValue(of: type, named: name, orNull: true)
    case .toOne:
      if isNext("n") { return try parseValue() }
      return .reference(try parseReference())
    case .objects(let isOrdered):
      let members = try parseList { parser throws(JSONError) in Value.reference(try parser.parseReference()) }
      return try memberList(members, isOrdered: isOrdered, named: name)
    case .values(let isOrdered, let type):
      let members = try parseList { parser throws(JSONError) in
        try parser.parseValue(of: type, named: name, orNull: false)
      }
      return try memberList(members, isOrdered: isOrdered, named: name)
    }
  }

  private func memberList(
    _ members: [Value], isOrdered: Bool, named name: String
  ) throws(JSONError) -> Value {
    let list = MemberList(members, isOrdered: isOrdered)
    guard list.count == members.count else { throw error("'\(name)' has a member twice") }
    return .members(list)
  }

  private mutating func parseValue(
    of type: AttributeType, named name: String, orNull: Bool
  ) throws(JSONError) -> Value {
    let start = position
    let value = try parseValue()
    switch (type, value) {
    case (.string, .string), (.date, .string), (.integer, .integer), (.number, .number), (.boolean, .bool), (.json, _):
      return value
    case (_, .null) where orNull: return value
    default:
      throw JSONError(reason: "'\(name)' wants \(type.article) and is \(value.kind)", offset: start)
    }
  }
}
