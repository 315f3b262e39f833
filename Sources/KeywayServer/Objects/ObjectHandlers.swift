import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// Serves `/v1/objects/{Entity}/{id}` as JSON, and creates objects.
struct ObjectHandlers: Sendable {
  let store: Store
  let writer: TransactionWriter
  let readings: Readings
  let limits: RequestLimits
  let streams: StreamRegistry
  /// Returns an id for an object that is created without one.
  let makeID: @Sendable () -> String

  /// `GET`: the object, or the keys of it that `?keys=` names, with the related objects that `?expand=` names.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let reference = try context.reference(in: store.schema)
    let target = context.target
    try context.checkParameters()
    let (conditions, viewer) = (ReadConditions(of: request), context.viewer)
    if viewer == nil, target.parameters.isEmpty, let response = try plainResponse(reference, conditions) {
      return .response(response)
    }
    return try readings.response(to: request) { [store] budget throws(Problem) in
      let snapshot = store.snapshot
      let cursor = store.cursor(snapshot.revision)
      budget.cursor = cursor
      let state = budget.metered(snapshot.state)
      let record = try snapshot.state.requireRecord(reference, for: viewer, in: state)
      var object = viewer.map { GuardedObject(reference: reference, viewer: $0) }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(256)
      guard target.parameters.isEmpty, object?.isSeenAlike(record) ?? true else {
        if !target.parameters.isEmpty { object?.target = target }
        let guarded = viewer.map { GuardedReader(state, for: $0) }
        if let object, let guarded, target["expand"] == nil {
          return try object.response(in: guarded, of: snapshot, budget, conditions, store)
        }
        let tag = target["expand"] == nil ? store.cursor(state.revision(of: reference)) : nil
        try budget.check()
        try ObjectEncoder(state: state, guarded: guarded, entity: record.entity, target: target, budget: budget)
          .append(reference, to: &bytes)
        let response = Response.json(bytes, tag: tag, cursor: cursor)
        guard let tag, try conditions.isUnchanged(tag, upTo: snapshot.revision) else { return response }
        return response.notModified()
      }
      let tag = store.cursor(state.appendJSON(of: reference, record, to: &bytes, upTo: budget.byteLimit))
      try budget.check(bytes)
      let response = Response.json(bytes, tag: tag, cursor: cursor)
      return try conditions.isUnchanged(tag, upTo: snapshot.revision) ? response.notModified() : response
    }
  }

  /// Returns the response with a small object that has only stored keys, as most have; nil for others. It needs no
  /// budget, no closure and no copy of the state.
  private func plainResponse(_ reference: Reference, _ conditions: ReadConditions) throws(Problem) -> Response? {
    let snapshot = store.snapshot
    guard let record = snapshot.state.record(reference), record.textBytes <= PendingWrite.largeBytes,
      !record.entity.hasComputedKeys
    else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(256)
    record.appendJSON(of: reference, to: &bytes, upTo: limits.answerBytes) { _, _ in }
    let tag = store.cursor(record.revision)
    guard bytes.count <= limits.answerBytes else { return nil }
    let cursor = store.cursor(snapshot.revision)
    do throws(Problem) {
      let response = Response.json(bytes, tag: tag, cursor: cursor)
      return try conditions.isUnchanged(tag, upTo: snapshot.revision) ? response.notModified() : response
    } catch {
      throw error.judged(by: cursor)
    }
  }

  /// `POST /v1/objects/{Entity}`: creates an object with an id from the server.
  func create(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let entity = context[.entity]
    _ = try Problem.translating(try store.schema.requireEntity(entity))
    try context.checkParameters()
    let body = try Body.object(of: request)
    let newIDs = NewIDs(makeID)
    guard let reference = Reference(entity: entity, id: newIDs.make()) else {
      throw Problem(.internalError, "no id could be made")
    }
    let lifetime = try lifetime(request, context, reference)
    let write = Write(operations: [.create(reference, body)] + lifetime, subject: .newObject, newIDs: newIDs.ids)
    return try writer.submit(write, request, context) { [store, limits, viewer = context.viewer] _, state in
      Self.written(reference, for: viewer, in: state, of: store, limits, isNew: true)
    }
  }

  /// `PUT`: creates the object, or replaces it.
  func put(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let (entity, id) = (context[.entity], context[.id])
    _ = try Problem.translating(try store.schema.requireEntity(entity))
    guard let reference = Reference(entity: entity, id: id) else {
      throw Problem(.invalidValue, RequestContext.idRule(id))
    }
    try context.checkParameters()
    let body = try Body.object(of: request)
    let lifetime = try lifetime(request, context, reference)
    let write = Write(operations: [.put(reference, body)] + lifetime, subject: .object(reference))
    return try writer.submit(write, request, context) { [store, limits, viewer = context.viewer] commit, state in
      let isNew = commit.before.contains { $0.object == reference && $0.record == nil }
      return Self.written(reference, for: viewer, in: state, of: store, limits, isNew: isNew)
    }
  }

  /// `PATCH`: a merge patch or a JSON Patch.
  func patch(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let reference = try context.reference(in: store.schema)
    let operations = try writer.reading(reference, for: context.viewer) { () throws(Problem) -> [Operation] in
      try context.checkParameters()
      let lifetime = try lifetime(request, context, reference)
      guard try Body.mediaType(of: request, among: Body.patchTypes) == Body.jsonPatch else {
        return [.patch(reference, try Body.object(of: request, types: Body.patchTypes))] + lifetime
      }
      let patch = try Body.jsonPatch(of: request, operationLimit: limits.patchOperations)
      return [.jsonPatch(reference, patch)] + lifetime
    }
    let write = Write(operations: operations, subject: .object(reference))
    return try writer.submit(write, request, context) { [store, limits, viewer = context.viewer] _, state in
      Self.written(reference, for: viewer, in: state, of: store, limits, isNew: false)
    }
  }

  /// `DELETE`: deletes the object by the delete rules.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let reference = try context.reference(in: store.schema)
    try writer.reading(reference, for: context.viewer) { () throws(Problem) in
      try context.checkParameters()
      try LifetimeReader.refuse(request, "a DELETE ends the object at once")
    }
    let write = Write(operations: [.delete(reference)], subject: .object(reference))
    return try writer.submit(write, request, context) { _, _ in
      Response(status: .noContent)
    }
  }

  /// Returns the operation that `Keyway-Lifetime` adds to a write, or none.
  private func lifetime(
    _ request: borrowing Request, _ context: RequestContext, _ reference: Reference
  ) throws(Problem) -> [Operation] {
    try LifetimeReader(streams: streams, requester: context.requester, named: context.nodes?.streams ?? [:])
      .operation(of: request, on: reference)
  }

  /// Returns the response with the object as a write left it.
  private static func written(
    _ reference: Reference, for viewer: Viewer?, in state: borrowing ModelState, of store: Store,
    _ limits: RequestLimits, isNew: Bool
  ) -> Response {
    var response = Response(status: isNew ? .created : .ok)
    let guarded = viewer.map { GuardedObject(reference: reference, viewer: $0) }
    if let guarded, !guarded.isSeenAlike(in: state) {
      response = guarded.written(in: state, status: response.status, epoch: store.epoch, limits)
    } else if let record = state.record(reference) {
      var bytes: [UInt8] = []
      let latest = state.appendJSON(of: reference, record, to: &bytes, upTo: limits.answerBytes)
      response = .written(bytes, status: response.status, tag: store.cursor(latest), limits)
    }
    if isNew { response.fields[.location] = "/v1/objects/\(reference)" }
    return response
  }
}
