import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// `/v1/objects/{Entity}/{id}/{keyPath}` as JSON.
struct KeyPathHandlers: Sendable {
  let store: Store
  let writer: TransactionWriter
  let readings: Readings
  let limits: RequestLimits
  /// Gives the id of an object that is created without one.
  let makeID: @Sendable () -> String

  /// `GET`: the value of a key path; of several that commas part, an object with a member for each.
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

  /// The value of one path; of several an object with a member for each, where one that is named twice stands once.
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

  /// `PUT`: sets the value, or with `?index=1` replaces members of a to-many.
  func put(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try write(request, context) { place throws(Problem) in
      try context.checkParameters()
      let indexes = try context.target.indexes()
      let body = try Body.value(of: request)
      guard let indexes else { return .set(place.reference, keyPath: place.keyPath, body) }
      return .replace(place.reference, keyPath: place.keyPath, at: indexes, try place.newMembers(body))
    }
  }

  /// `DELETE`: sets to null, empties a to-many, or removes the members that the query names.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try write(request, context) { place throws(Problem) in
      try context.checkParameters()
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
      var fields = HTTPFields()
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
