import HTTPServer
import HTTPTypes
import KeyValueModel
import OrderedCollections

/// Serves `POST /v1/transactions`: operations as JSON.
struct TransactionHandler: Sendable {
  let schema: Schema
  let writer: TransactionWriter
  let limits: RequestLimits
  let streams: StreamRegistry
  /// Returns an id for an object that is created without one.
  let makeID: @Sendable () -> String

  /// The JSON levels of a transaction around a value that it writes: the body, its list, the operation, the object to
  /// create. They are added to the levels of a body, so that a transaction takes any value that a `PUT` of a key takes.
  private static let envelopeLevels = 4

  /// Returns the body of a transaction. Throws a problem if it is not valid JSON.
  static func body(of request: borrowing Request) throws(Problem) -> JSONObject {
    try Body.object(of: request, depthLimit: Body.depthLimit + envelopeLevels)
  }

  /// Commits all operations or none.
  func commit(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    try LifetimeReader.refuse(request, "in a transaction, use 'lifetime' of create and patch")
    let body = try Self.body(of: request)
    guard case .array(let elements)? = body["operations"], body.members.count == 1 else {
      throw Problem(.invalidValue, "a transaction must have the form {\"operations\":[…]}")
    }
    guard elements.count <= limits.transactionOperations else {
      throw Problem(
        .tooManyOperations, "\(elements.count) operations exceed the limit of \(limits.transactionOperations)")
    }
    // A transaction without operations evaluates no rule, but still makes a revision.
    if elements.isEmpty, context.requester.isUnknown { throw AccessControl.unauthenticated }
    let newIDs = NewIDs(makeID)
    let lifetimes = LifetimeReader(
      streams: streams, requester: context.requester, named: context.nodes?.streams ?? [:])
    var operations: [Operation] = []
    for (index, element) in elements.enumerated() {
      do throws(ModelError) {
        let reader = try OperationReader(element, schema, makeID: newIDs.make)
        let operation = try reader.operation()
        operations.append(operation)
        if let lifetime = try reader.lifetime(lifetimes) {
          operations.append(.lifetime(operation.reference, lifetime))
        }
      } catch {
        var located = error
        located.operation = index
        throw Problem(located)
      }
    }
    let write = Write(operations: operations, subject: .transaction, newIDs: newIDs.ids)
    return try writer.submit(write, request, context) { [viewer = context.viewer] commit, state in
      // The writer may not be allowed to read what it wrote.
      if let viewer, !commit.results.allSatisfy({ state.record($0) == nil || state.exists($0, for: viewer) }) {
        return Response(status: .noContent)
      }
      var bytes = Array("{\"revision\":\(commit.revision),\"results\":[".utf8)
      for (index, reference) in commit.results.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(contentsOf: "{\"object\":\"\(reference)\"}".utf8)
      }
      bytes.append(contentsOf: "]}".utf8)
      return .json(bytes)
    }
  }
}

/// Reads one operation of a transaction. The table of `OperationKind` describes the operations.
struct OperationReader {
  private let members: JSONObject
  private let schema: Schema
  private let makeID: () -> String

  /// Creates a reader for an element of `operations`. Throws `invalid-value` if it is not an object.
  init(_ value: Value, _ schema: Schema, makeID: @escaping () -> String) throws(ModelError) {
    guard case .object(let members) = value else {
      throw ModelError(.invalidValue, "an operation must be a JSON object")
    }
    self.members = members
    self.schema = schema
    self.makeID = makeID
  }

  /// Returns the operation. Throws an error if a member is missing or invalid.
  func operation() throws(ModelError) -> Operation {
    let kind = try kind()
    let reference = try kind == .create ? newReference() : self.reference()
    var operands: [Operand] = []
    for form in kind.operands {
      operands.append(try operand(form, operands, of: reference))
    }
    return Operation(kind, reference, operands)
  }

  /// The kinds of operations that may have a lifetime.
  static let leasing: Set<OperationKind> = [.create, .patch]

  /// Returns the lifetime of the object, or nil if the operation has none. Call `operation()` first.
  func lifetime(_ reader: LifetimeReader) throws(ModelError) -> Lifetime? {
    guard let value = members["lifetime"] else { return nil }
    return try reader.lifetime(value)
  }

  /// The kinds of operations with one name in `op`, and the members that such an operation may have.
  private struct Sent {
    let first: OperationKind
    let isAmbiguous: Bool
    let members: [String]

    init(_ kinds: [OperationKind], first: OperationKind) {
      self.first = first
      isAmbiguous = kinds.count > 1
      var names = ["object"] + (first == .create ? ["entity"] : [])
      for operand in kinds.flatMap(\.operands) where !names.contains(operand.name) { names.append(operand.name) }
      if OperationReader.leasing.contains(first) { names.append("lifetime") }
      members = names
    }
  }

  /// The kinds by name. Computed once, since a transaction may have thousands of operations.
  private static let sent = Dictionary(grouping: OperationKind.allCases.filter(\.isSent), by: \.name)
    .compactMapValues { kinds in kinds.first.map { Sent(kinds, first: $0) } }

  /// Returns the kind that `op` names, after checking that it allows all members of the operation. Two kinds are called
  /// `remove`: one has indexes, the other members.
  private func kind() throws(ModelError) -> OperationKind {
    let name = try string("op")
    guard let sent = Self.sent[name] else { throw ModelError(.invalidValue, "'\(name)' is not an operation") }
    for member in members.members.keys where member != "op" && !sent.members.contains(member) {
      throw ModelError(
        .invalidValue, "'\(member)' is not a member of this operation; it has \(sent.members.joined(separator: ", "))")
    }
    guard sent.isAmbiguous else { return sent.first }
    switch (members["index"], members["value"]) {
    case (nil, _?): return .removeMembers
    case (_?, nil): return .removeIndexes
    case (nil, nil): throw ModelError(.invalidValue, "the operation lacks 'index' or 'value'")
    case (_?, _?): throw ModelError(.invalidValue, "a remove must have index or value, not both")
    }
  }

  /// Returns one operand. `operands` are the operands before it, such as the key path of members.
  private func operand(
    _ form: OperandForm, _ operands: [Operand], of reference: Reference
  ) throws(ModelError) -> Operand {
    switch form {
    case .keyPath, .key: return .text(try string(form.name))
    case .value: return .value(try value(form.name))
    case .values: return .values(MemberReader.values(try value(form.name)))
    case .indexes: return .indexes(try indexes())
    case .optionalIndexes: return .indexes(members["index"] == nil ? nil : try indexes())
    case .members:
      guard case .text(let keyPath)? = operands.first else { break }
      return .members(try newMembers(reference, keyPath))
    case .body:
      guard case .object(let object) = try value(form.name) else {
        throw ModelError(.invalidValue, "'\(form.name)' must be a JSON object")
      }
      return .body(object)
    case .revision:
      guard let revision = try value(form.name).wholeNumber, revision >= 0 else {
        throw ModelError(.invalidValue, "'revision' must be a whole number, 0 or greater")
      }
      return .revision(Revision(revision))
    case .mutation, .patch, .lifetime: break
    }
    throw ModelError(.invalidValue, "'\(form.name)' cannot be sent")
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
      throw ModelError(.invalidValue, "'index' must be an array of indexes")
    }
    var indexes: [Int] = []
    for element in elements {
      guard let index = element.wholeNumber else {
        throw ModelError(.invalidValue, "'index' has \(element.json), which is not a whole number")
      }
      indexes.append(Int(index))
    }
    return indexes
  }

  // MARK: Members

  private func value(_ name: String) throws(ModelError) -> Value {
    guard let value = members[name] else { throw ModelError(.invalidValue, "the operation lacks '\(name)'") }
    return value
  }

  private func string(_ name: String) throws(ModelError) -> String {
    guard case .string(let text) = try value(name) else {
      throw ModelError(.invalidValue, "'\(name)' must be a string")
    }
    return text
  }

  private func reference() throws(ModelError) -> Reference {
    let text = try string("object")
    guard let reference = Reference(text) else {
      throw ModelError(.invalidValue, "'\(text)' is not a reference such as \"Account/1\"")
    }
    return reference
  }

  private func newReference() throws(ModelError) -> Reference {
    guard members["entity"] != nil else { return try reference() }
    guard members["object"] == nil else {
      throw ModelError(.invalidValue, "a create must have object or entity, not both")
    }
    let entity = try string("entity")
    guard let reference = Reference(entity: entity, id: makeID()) else {
      throw ModelError(.unknownEntity, "the schema has no entity '\(entity)'")
    }
    return reference
  }
}
