import HTTPServer
import HTTPTypes
import KeyValueModel
import ModelStore

/// `/v1/objects/{Entity}/{id}/{keyPath}` as JSON.
struct KeyPathHandlers: Sendable {
  let store: Store
  let writer: TransactionWriter
  let limits: RequestLimits
  /// Gives the id of an object that is created without one.
  let makeID: @Sendable () -> String

  /// `GET`: the value of a key path; of several that commas part, an object with a member for each.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let reference = try context.reference(in: store.schema)
    try context.target.allowOnly()
    let snapshot = store.snapshot
    let cursor = store.cursor(snapshot.revision)
    let record = try Problem.translating(try snapshot.state.requireRecord(reference))
    var paths: [ModelKeyPath] = []
    var budget = ResponseBudget(limits)
    for text in context.keyPaths {
      let path = try store.schema.resolve(text, from: record.entity, of: reference)
      try budget.spend(on: path, of: reference, in: snapshot.state)
      paths.append(path)
    }
    let tag = store.cursor(paths.map { snapshot.state.revision(of: reference, along: $0) }.max() ?? 0)
    if try EntityTagCondition.isNotModified(request, tag) {
      return .response(.notModified(tag: tag, cursor: cursor))
    }
    var bytes: [UInt8] = []
    if paths.count == 1, let path = paths.first {
      snapshot.state.value(of: reference, at: path).appendJSON(to: &bytes)
    } else {
      var members = JSONObject()
      for path in paths { members[path.text] = snapshot.state.value(of: reference, at: path) }
      members.appendJSON(to: &bytes)
    }
    return .response(.json(bytes, tag: tag, cursor: cursor))
  }

  /// `PUT`: sets the value, or with `?index=1` replaces members of a to-many.
  func put(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try write(request, context) { place throws(Problem) in
      try context.target.allowOnly("index")
      let indexes = try context.target.indexes()
      let body = try Body.value(of: request)
      guard let indexes else { return .set(place.reference, keyPath: place.keyPath, body) }
      return .replace(place.reference, keyPath: place.keyPath, at: indexes, try place.newMembers(body))
    }
  }

  /// `DELETE`: sets to null, empties a to-many, or removes the members that the query names.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try write(request, context) { place throws(Problem) in
      try context.target.allowOnly("index", "object", "value")
      if let removal = try place.removal(context.target) { return removal }
      // A to-many is never null: it is emptied.
      return .set(place.reference, keyPath: place.keyPath, place.memberType == nil ? .null : .array([]))
    }
  }

  /// Does one operation on a key path, and responds with the value as written, or with nothing where it was deleted.
  func write(
    _ request: borrowing Request, _ context: RequestContext, _ operation: (Place) throws(Problem) -> Operation
  ) throws(Problem) -> HandlerResponse {
    let reference = try context.reference(in: store.schema)
    let place = Place(reference: reference, keyPath: context[.keyPath], schema: store.schema, newIDs: NewIDs(makeID))
    let operation = try writer.reading(reference, place.keyPath) { () throws(Problem) in try operation(place) }
    let isDeletion = if case .set = operation { request.method == .delete } else { false }
    let subject = Write.Subject.keyPath(reference, place.keyPath)
    let write = Write(operations: [operation], subject: subject, newIDs: place.newIDs.ids)
    return try writer.submit(write, request, context) { [store, keyPath = place.keyPath] _, state in
      let response = Self.written(keyPath, of: reference, in: state, of: store)
      return isDeletion ? Response(status: .noContent, fields: [.eTag: response.fields[.eTag] ?? ""]) : response
    }
  }

  private static func written(
    _ keyPath: String, of reference: Reference, in state: borrowing ModelState, of store: Store
  ) -> Response {
    guard let record = state.record(reference), let path = try? store.schema.resolve(keyPath, from: record.entity)
    else { return Response(status: .ok) }
    var bytes: [UInt8] = []
    state.value(of: reference, at: path).appendJSON(to: &bytes)
    return .json(bytes, tag: store.cursor(state.revision(of: reference, along: path)))
  }
}

extension RequestContext {
  /// The key paths of `{keyPath}`, which commas part.
  var keyPaths: [String] {
    self[.keyPath].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }
}

extension Schema {
  /// The key path of a text; where there is none, the problem names the object and the text.
  func resolve(_ text: String, from entity: Entity, of reference: Reference) throws(Problem) -> ModelKeyPath {
    do throws(ModelError) {
      return try resolve(text, from: entity)
    } catch {
      throw Problem(ModelError(error.code, error.detail, object: reference, keyPath: text))
    }
  }
}
