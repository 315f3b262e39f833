internal import HTTPServer
internal import HTTPTypes
internal import KeyValueModel
internal import OrderedCollections

/// `POST /v1/transactions`: operations as JSON.
extension KeywayAPI {
  /// The most operations of one transaction: `transactions.operations` in the documentation of limits.
  static let maximumOperations = 10_000

  func commitTransaction(_ request: borrowing Request, _ target: Target) throws(Problem) -> Answer {
    try target.allowOnly()
    let body = try Body.object(of: request)
    guard case .array(let elements)? = body["operations"], body.members.count == 1 else {
      throw Problem(.invalidValue, "a transaction is {\"operations\":[…]}")
    }
    guard elements.count <= Self.maximumOperations else {
      throw Problem(
        .tooManyOperations, "\(elements.count) operations; a transaction has at most \(Self.maximumOperations)")
    }
    var operations: [Operation] = []
    for (index, element) in elements.enumerated() {
      do throws(ModelError) {
        operations.append(try OperationReader(element, makeID: makeID).operation())
      } catch {
        var located = error
        located.operation = index
        throw Problem(located)
      }
    }
    return try write(operations, about: .transaction, request) { _, commit, _ in
      var bytes = Array("{\"revision\":\(commit.revision),\"results\":[".utf8)
      for (index, reference) in commit.results.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(contentsOf: "{\"object\":\"\(reference)\"}".utf8)
      }
      bytes.append(contentsOf: "]}".utf8)
      return Response(status: .ok, fields: [.contentType: Body.json], body: bytes)
    }
  }
}

/// Reads one operation of a transaction.
private struct OperationReader {
  private let members: JSONObject
  private let makeID: () -> String

  init(_ value: Value, makeID: @escaping () -> String) throws(ModelError) {
    guard case .object(let members) = value else { throw ModelError(.invalidValue, "an operation is a JSON object") }
    self.members = members
    self.makeID = makeID
  }

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
    case "insert", "remove", "replace":
      throw ModelError(.notACollection, "'\(try string("op"))' wants a to-many, and the schema has none")
    case let name:
      throw ModelError(.invalidValue, "'\(name)' is no operation")
    }
  }

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
