import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// Serves `/v1/objects/{Entity}/{id}/{keyPath}` as JSON.
struct KeyPathHandlers: Sendable {
  let store: Store
  let writer: TransactionWriter
  let readings: Readings
  let limits: RequestLimits
  /// Returns an id for an object that is created without one.
  let makeID: @Sendable () -> String

  /// `GET`: the value of a key path. For several key paths, separated by commas, an object with a member for each.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let reference = try context.reference(in: store.schema)
    try context.checkParameters()
    let keyPaths = context.keyPaths
    let (conditions, viewer) = (ReadConditions(of: request), context.viewer)
    return try readings.response(to: request) { [store] budget throws(Problem) in
      let snapshot = store.snapshot
      let cursor = store.cursor(snapshot.revision)
      budget.cursor = cursor
      let state = budget.metered(snapshot.state)
      let record = try snapshot.state.requireRecord(reference, for: viewer, in: state)
      var paths: [ModelKeyPath] = []
      for text in keyPaths {
        let path = try store.schema.resolve(text, from: record.entity, of: reference)
        if let viewer {
          try Problem.translating(try viewer.check(path, from: record.entity, of: reference, in: store.schema))
        }
        try budget.spend(on: path, of: reference, in: state)
        paths.append(path)
      }
      let guarded = viewer.map { GuardedObject(reference: reference, keyPaths: paths, viewer: $0) }
      if let guarded, !guarded.isSeenAlike(record) {
        return try guarded.response(
          in: GuardedReader(state, for: guarded.viewer), of: snapshot, budget, conditions, store)
      }
      var values: [Value] = []
      var latest: Revision = 0
      for path in paths {
        let reading = state.reading(reference, at: path)
        try budget.check()
        values.append(reading.value)
        latest = max(latest, reading.latest)
      }
      let tag = store.cursor(latest)
      let response = Response.json(try Self.json(paths, values, budget), tag: tag, cursor: cursor)
      return try conditions.isUnchanged(tag, upTo: snapshot.revision) ? response.notModified() : response
    }
  }

  /// Encodes the value of one path, or an object with a member for each of several paths. A path that is named twice
  /// appears once.
  static func json(
    _ paths: [ModelKeyPath], _ values: [Value], _ budget: ReadingBudget
  ) throws(Problem) -> [UInt8] {
    var bytes: [UInt8] = []
    guard paths.count > 1 else {
      values.first?.appendJSON(to: &bytes, upTo: budget.byteLimit)
      try budget.check(bytes)
      return bytes
    }
    var names: Set<String> = []
    bytes.append(UInt8(ascii: "{"))
    for (path, value) in zip(paths, values) where names.insert(path.text).inserted {
      if names.count > 1 { bytes.append(UInt8(ascii: ",")) }
      bytes.appendJSONString(path.text)
      bytes.append(UInt8(ascii: ":"))
      value.appendJSON(to: &bytes, upTo: budget.byteLimit)
      try budget.check(bytes)
    }
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  /// `PUT`: sets the value or, with `?index=1`, replaces members of a to-many.
  func put(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try write(request, context) { place throws(Problem) in
      try context.checkParameters()
      let indexes = try context.target.indexes()
      let body = try Body.value(of: request)
      guard let indexes else { return .set(place.reference, keyPath: place.keyPath, body) }
      return .replace(place.reference, keyPath: place.keyPath, at: indexes, try place.newMembers(body))
    }
  }

  /// `DELETE`: sets the value to null, empties a to-many, or removes the members that the query names.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try write(request, context) { place throws(Problem) in
      try context.checkParameters()
      if let removal = try place.removal(context.target) { return removal }
      // A to-many is emptied, since it is never null.
      return .set(place.reference, keyPath: place.keyPath, place.memberType == nil ? .null : .array([]))
    }
  }

  /// Performs one operation on a key path. Responds with the value as written, or without a body if it was deleted.
  private func write(
    _ request: borrowing Request, _ context: RequestContext, _ operation: (Place) throws(Problem) -> Operation
  ) throws(Problem) -> HandlerResponse {
    let reference = try context.reference(in: store.schema)
    let place = Place(reference: reference, keyPath: context[.keyPath], schema: store.schema, newIDs: NewIDs(makeID))
    let operation = try writer.reading(reference, place.keyPath, for: context.viewer) { () throws(Problem) in
      try LifetimeReader.refuse(request, "a key path has no lifetime of its own")
      return try operation(place)
    }
    let isDeletion = if case .set = operation { request.method == .delete } else { false }
    let subject = Write.Subject.keyPath(reference, place.keyPath)
    let write = Write(operations: [operation], subject: subject, newIDs: place.newIDs.ids)
    return try writer.submit(write, request, context) {
      [store, limits, viewer = context.viewer, keyPath = place.keyPath] _, state in
      let response = Self.written(keyPath, of: reference, for: viewer, in: state, of: store, limits)
      guard isDeletion else { return response }
      var fields = FieldSection()
      fields[.eTag] = response.fields[.eTag]
      return Response(status: .noContent, fields: fields)
    }
  }

  private static func written(
    _ keyPath: String, of reference: Reference, for viewer: Viewer?, in state: borrowing ModelState, of store: Store,
    _ limits: RequestLimits
  ) -> Response {
    guard let record = state.record(reference), let path = try? store.schema.resolve(keyPath, from: record.entity)
    else { return Response(status: .ok) }
    let guarded = viewer.map { GuardedObject(reference: reference, keyPaths: [path], viewer: $0) }
    if let guarded, !guarded.isSeenAlike(in: state) {
      return guarded.written(in: state, status: .ok, epoch: store.epoch, limits)
    }
    let (value, latest) = state.reading(reference, at: path)
    var bytes: [UInt8] = []
    value.appendJSON(to: &bytes, upTo: limits.answerBytes)
    return .written(bytes, status: .ok, tag: store.cursor(latest), limits)
  }
}

// MARK: - To-many key paths

/// Inserts and removes members of to-many key paths, and performs set operations.
extension KeyPathHandlers {
  /// The object and the key path that a request writes.
  fileprivate struct Place {
    let reference: Reference
    let keyPath: String
    let schema: Schema
    /// The source of ids for objects created in place.
    let newIDs: NewIDs

    /// The type of the members of the to-many, or nil if the key path does not name one.
    var memberType: ValueType? { schema.memberType(of: keyPath, from: reference) }

    /// Returns the members that a body names or creates.
    func newMembers(_ body: Value) throws(Problem) -> [NewMember] {
      do throws(ModelError) {
        return try MemberReader(keyPath, of: reference, in: schema, makeID: newIDs.make).newMembers(body)
      } catch {
        throw Problem(ModelError(error.code, error.detail, object: reference, keyPath: keyPath))
      }
    }

    /// Returns the removal by `?index=0,2`, `?object=Employee/3` or, for values, `?value="a"`. Nil without any of them.
    func removal(_ target: Target) throws(Problem) -> Operation? {
      try target.allowOneOf("index", "object", "value")
      if let indexes = try target.indexes() { return .removeIndexes(reference, keyPath: keyPath, indexes) }
      if let members = try target.references() {
        if case .attribute? = memberType {
          throw Problem(
            .malformedQuery, "object: the members are values; remove them with value=JSON", object: reference,
            keyPath: keyPath)
        }
        return .removeMembers(reference, keyPath: keyPath, members)
      }
      return try target.values().map { .removeMembers(reference, keyPath: keyPath, $0) }
    }
  }

  /// `POST …/{toMany}?index=0,2` or `?operation=union`. Without either, members are appended.
  func post(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try write(request, context) { place throws(Problem) in
      let target = context.target
      try context.checkParameters()
      try target.allowOneOf("index", "operation")
      let indexes = try target.indexes()
      let mutation = try target["operation"].map { text throws(Problem) in try Self.mutation(text) }
      let body = try Body.value(of: request)
      guard let mutation else {
        return .insert(place.reference, keyPath: place.keyPath, try place.newMembers(body), at: indexes)
      }
      // The other operations create no objects: an object in their body is not a member.
      let mayMake = mutation == .union || mutation == .set
      let members = mayMake ? try place.newMembers(body) : MemberReader.values(body).map(NewMember.value)
      return .mutateSet(place.reference, keyPath: place.keyPath, mutation, members)
    }
  }

  private static func mutation(_ text: String) throws(Problem) -> SetMutation {
    if let mutation = SetMutation(rawValue: text) { return mutation }
    let names = SetMutation.allCases.map(\.rawValue).joined(separator: ", ")
    throw Problem(.malformedQuery, "operation: '\(text)' is not one of \(names)")
  }
}

/// Reads the members of a to-many from a body or an operation: one member or an array of them. Members are references,
/// values, or objects to create in place.
struct MemberReader {
  /// The entity of the members. Nil if they are values, and if there is no such to-many: the model then reports the
  /// error.
  private let destination: String?
  private let makeID: () -> String

  /// Creates a reader for the to-many that a key path of an object names.
  init(_ keyPath: String, of reference: Reference, in schema: Schema, makeID: @escaping () -> String) {
    if case .object(let name)? = schema.memberType(of: keyPath, from: reference) {
      destination = name
    } else {
      destination = nil
    }
    self.makeID = makeID
  }

  /// Returns the members. Objects get an id from the server unless they have an `@ref`.
  func newMembers(_ value: Value) throws(ModelError) -> [NewMember] {
    var members: [NewMember] = []
    for value in Self.values(value) { members.append(try newMember(value)) }
    return members
  }

  /// Returns the elements of an array, or the value itself as the only element.
  static func values(_ value: Value) -> [Value] { value.elements ?? [value] }

  private func newMember(_ value: Value) throws(ModelError) -> NewMember {
    guard case .object(let body) = value, let destination else { return .value(value) }
    guard let name = body["@ref"] else {
      guard let reference = Reference(entity: destination, id: makeID()) else {
        throw ModelError(.unknownEntity, "the schema has no entity '\(destination)'")
      }
      return .object(reference, body)
    }
    guard case .string(let text) = name, let reference = Reference(text) else {
      throw ModelError(.invalidValue, "@ref is \(name.json), which is not a reference such as \"\(destination)/1\"")
    }
    return .object(reference, body)
  }
}

/// Query parameters that name members of a to-many.
extension Target {
  /// Returns the indexes of `index=0,2`, or nil without the parameter. The model checks that they exist.
  fileprivate func indexes() throws(Problem) -> [Int]? {
    guard let texts = list("index") else { return nil }
    var indexes: [Int] = []
    for text in texts {
      guard (text.hasPrefix("-") ? text.dropFirst() : text[...]).isDecimal else {
        throw Problem(.malformedQuery, "index: '\(text)' is not a whole number")
      }
      // A number that is too long is out of range too.
      indexes.append(Int(text) ?? .max)
    }
    return indexes
  }

  /// Returns the references of `object=Employee/3,Employee/4`, or nil without the parameter.
  fileprivate func references() throws(Problem) -> [Value]? {
    guard let texts = list("object") else { return nil }
    var references: [Value] = []
    for text in texts {
      guard let reference = Reference(text) else {
        throw Problem(.malformedQuery, "object: '\(text)' is not a reference such as Employee/3")
      }
      references.append(.reference(reference))
    }
    return references
  }

  /// Returns the value of `value=JSON`, or the elements of an array. Nil without the parameter.
  fileprivate func values() throws(Problem) -> [Value]? {
    guard let text = self["value"] else { return nil }
    do throws(JSONError) {
      return MemberReader.values(try Value(json: text))
    } catch {
      throw Problem(.malformedQuery, "value: \(error.description)")
    }
  }

  /// Throws `malformed-query` if the request has more than one of the parameters.
  fileprivate func allowOneOf(_ names: String...) throws(Problem) {
    let given = names.filter { self[$0] != nil }
    if given.count > 1 { throw Problem(.malformedQuery, "\(given.joined(separator: " and ")) cannot be combined") }
  }
}

extension Schema {
  /// Returns the type of the members of the collection that a key path names. Nil if the path is invalid or does not
  /// name a collection.
  fileprivate func memberType(of keyPath: String, from reference: Reference) -> ValueType? {
    guard let entity = entity(of: reference) else { return nil }
    return (try? resolve(keyPath, from: entity))?.type.element
  }
}
