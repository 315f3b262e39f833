import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// An object, or what a key path of it reads, as someone sees it who may not read everything.
struct GuardedObject {
  let reference: Reference
  /// The key paths; nil for the object as a whole.
  var keyPaths: [ModelKeyPath]?
  let viewer: Viewer
  /// What the request asks of the object as a whole.
  var target: Target?

  /// The body of the answer to a `GET`, and its tag; nil where the object may not be read, or is not there.
  func answer(
    in state: MeteredState, _ budget: ReadingBudget, epoch: String
  ) throws(Problem) -> (bytes: [UInt8], tag: String)? {
    try answer(in: GuardedReader(state, for: viewer), state, budget, epoch: epoch)
  }

  private func answer(
    in guarded: GuardedReader<MeteredState>, _ state: MeteredState, _ budget: ReadingBudget, epoch: String
  ) throws(Problem) -> (bytes: [UInt8], tag: String)? {
    guard let record = guarded.record(reference) else { return nil }
    var bytes: [UInt8] = []
    if let keyPaths {
      var values: [Value] = []
      for path in keyPaths {
        values.append(guarded.value(of: reference, at: path))
        try budget.check()
      }
      bytes = try KeyPathHandlers.json(keyPaths, values, budget)
    } else {
      let encoder =
        if let target {
          try ObjectEncoder(state: state, guarded: guarded, entity: record.entity, target: target, budget: budget)
        } else {
          ObjectEncoder(state: state, guarded: guarded, budget: budget)
        }
      try encoder.append(reference, to: &bytes)
    }
    if isSeenAlike(record) { return (bytes, Cursor(epoch: epoch, revision: record.revision).description) }
    return (bytes, ContentTag(of: bytes, epoch: epoch).text)
  }

  /// Whether the viewer, who may read the object, gets the answer that everyone gets: it is made of stored keys of the
  /// object alone, of which none is hidden. The object's revision is then the tag, too.
  func isSeenAlike(_ record: ObjectRecord) -> Bool {
    let entity = record.entity
    guard viewer.hiddenKeys(of: entity).isEmpty else { return false }
    guard let keyPaths else { return entity.keys.allSatisfy { $0.storage != nil } }
    return keyPaths.allSatisfy { path in
      path.keys.count == 1 && path.operation == nil && entity.keys[path.keys[0]].storage != nil
    }
  }

  /// Whether the viewer may read the object, and gets the answer that everyone gets.
  func isSeenAlike(in state: borrowing ModelState) -> Bool {
    guard let record = state.record(reference), isSeenAlike(record) else { return false }
    return viewer.mayRead(reference, record, in: copy state)
  }

  /// The answer to a write, which has gone too far to be refused: without a body where what was written may not be
  /// read, or is longer than an answer may be.
  func written(
    in state: borrowing ModelState, status: HTTPResponse.Status, epoch: String, _ limits: RequestLimits
  ) -> Response {
    let budget = ReadingBudget(unlimitedBut: limits)
    guard let (bytes, tag) = try? answer(in: budget.metered(copy state), budget, epoch: epoch) else {
      return Response(status: status == .ok ? .noContent : status)
    }
    var response = Response.json(bytes, status: status)
    response.fields[.eTag] = "\"\(tag)\""
    return response
  }

  /// The tag that a `GET` would give; nil where the object may not be read, or is not there.
  func tag(in state: borrowing ModelState, epoch: String, _ limits: RequestLimits) -> String? {
    let budget = ReadingBudget(unlimitedBut: limits)
    return try? answer(in: budget.metered(copy state), budget, epoch: epoch)?.tag
  }

  /// The answer to a `GET`; `guarded` is the state as the viewer sees it. Throws `unknown-object`.
  func response(
    in guarded: GuardedReader<MeteredState>, of snapshot: Snapshot, _ budget: ReadingBudget,
    _ conditions: ReadConditions, _ store: Store
  ) throws(Problem) -> Response {
    let state = budget.metered(snapshot.state)
    guard let (bytes, tag) = try answer(in: guarded, state, budget, epoch: store.epoch) else {
      throw Problem(.unknownObject, "there is no object \(reference)", object: reference)
    }
    let cursor = store.cursor(snapshot.revision)
    let isUnchanged = try conditions.isUnchanged(tag)
    var response = Response.json(bytes, cursor: cursor)
    response.fields[.eTag] = "\"\(tag)\""
    return isUnchanged ? response.notModified() : response
  }
}

extension EntityTagCondition {
  /// Whether it names a tag that is no revision.
  var namesContent: Bool {
    guard case .tags(let tags) = self else { return false }
    return tags.contains { Cursor($0.cursor) == nil }
  }
}
