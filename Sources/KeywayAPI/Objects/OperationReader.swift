import KeyValueModel

/// Reads one operation of a transaction.
struct OperationReader {
  private let members: JSONObject
  private let schema: Schema
  private let makeID: () -> String

  /// A reader of an element of `operations`, or `invalid-value` where it is no object.
  init(_ value: Value, _ schema: Schema, makeID: @escaping () -> String) throws(ModelError) {
    guard case .object(let members) = value else { throw ModelError(.invalidValue, "an operation is a JSON object") }
    self.members = members
    self.schema = schema
    self.makeID = makeID
  }

  /// The operation, or what is wrong with its members.
  func operation() throws(ModelError) -> Operation {
    switch try string("op") {
    case "create":
      try allowOnly("object", "entity", "value")
      return .create(try newReference(), try object("value"))
    case "set":
      try allowOnly("object", "keyPath", "value")
      return .set(try reference(), keyPath: try string("keyPath"), try value("value"))
    case "patch":
      try allowOnly("object", "value")
      return .patch(try reference(), try object("value"))
    case "delete":
      try allowOnly("object")
      return .delete(try reference())
    case "insert": return try insertion()
    case "remove": return try removal()
    case "replace": return try replacement()
    case let name: return try bracketOrRequirement(name)
    }
  }

  private func bracketOrRequirement(_ name: String) throws(ModelError) -> Operation {
    switch name {
    case "willChange":
      try allowOnly("object", "key")
      return .willChange(try reference(), key: try string("key"))
    case "didChange":
      try allowOnly("object", "key")
      return .didChange(try reference(), key: try string("key"))
    case "require":
      try allowOnly("object", "revision")
      guard case .integer(let revision) = try value("revision"), revision >= 0 else {
        throw ModelError(.invalidValue, "revision is a whole number from 0")
      }
      return .require(try reference(), Revision(revision))
    default: throw ModelError(.invalidValue, "'\(name)' is no operation")
    }
  }

  // MARK: To-manys

  private func insertion() throws(ModelError) -> Operation {
    try allowOnly("object", "keyPath", "value", "index")
    let (reference, keyPath) = (try reference(), try string("keyPath"))
    let indexes = members["index"] == nil ? nil : try indexes()
    return .insert(reference, keyPath: keyPath, try newMembers(reference, keyPath), at: indexes)
  }

  private func removal() throws(ModelError) -> Operation {
    try allowOnly("object", "keyPath", "index", "value")
    let (reference, keyPath) = (try reference(), try string("keyPath"))
    switch (members["index"], members["value"]) {
    case (nil, let value?): return .removeMembers(reference, keyPath: keyPath, MemberReader.values(value))
    case (_?, nil): return .removeIndexes(reference, keyPath: keyPath, try indexes())
    case (nil, nil): throw ModelError(.invalidValue, "the operation lacks 'index' or 'value'")
    case (_?, _?): throw ModelError(.invalidValue, "a remove has index or value, not both")
    }
  }

  private func replacement() throws(ModelError) -> Operation {
    try allowOnly("object", "keyPath", "index", "value")
    let (reference, keyPath) = (try reference(), try string("keyPath"))
    let indexes = try indexes()
    return .replace(reference, keyPath: keyPath, at: indexes, try newMembers(reference, keyPath))
  }

  private func newMembers(_ reference: Reference, _ keyPath: String) throws(ModelError) -> [NewMember] {
    do throws(ModelError) {
      return try MemberReader(keyPath, of: reference, in: schema, makeID: makeID).newMembers(try value("value"))
    } catch {
      throw ModelError(error.code, error.detail, object: reference, keyPath: keyPath)
    }
  }

  private func indexes() throws(ModelError) -> [Int] {
    guard case .array(let elements) = try value("index") else {
      throw ModelError(.invalidValue, "'index' is an array of places")
    }
    var indexes: [Int] = []
    for element in elements {
      guard case .integer(let index) = element else {
        throw ModelError(.invalidValue, "'index' has \(element.json), which is no whole number")
      }
      indexes.append(Int(index))
    }
    return indexes
  }

  // MARK: Members of an operation

  private func allowOnly(_ names: String...) throws(ModelError) {
    for name in members.members.keys where name != "op" && !names.contains(name) {
      throw ModelError(
        .invalidValue, "'\(name)' is no member of this operation; it has \(names.joined(separator: ", "))")
    }
  }

  private func value(_ name: String) throws(ModelError) -> Value {
    guard let value = members[name] else { throw ModelError(.invalidValue, "the operation lacks '\(name)'") }
    return value
  }

  private func string(_ name: String) throws(ModelError) -> String {
    guard case .string(let text) = try value(name) else { throw ModelError(.invalidValue, "'\(name)' is a string") }
    return text
  }

  private func object(_ name: String) throws(ModelError) -> JSONObject {
    guard case .object(let object) = try value(name) else {
      throw ModelError(.invalidValue, "'\(name)' is a JSON object")
    }
    return object
  }

  private func reference() throws(ModelError) -> Reference {
    let text = try string("object")
    guard let reference = Reference(text) else {
      throw ModelError(.invalidValue, "'\(text)' is no reference such as \"Account/1\"")
    }
    return reference
  }

  private func newReference() throws(ModelError) -> Reference {
    guard members["entity"] != nil else { return try reference() }
    guard members["object"] == nil else { throw ModelError(.invalidValue, "a create has object or entity, not both") }
    let entity = try string("entity")
    guard let reference = Reference(entity: entity, id: makeID()) else {
      throw ModelError(.unknownEntity, "there is no entity '\(entity)'")
    }
    return reference
  }
}
