import Crypto
import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support

/// An object, or the values of its key paths, as a viewer sees them who may not read everything.
struct GuardedObject {
  let reference: Reference
  /// The key paths, or nil for the object as a whole.
  var keyPaths: [ModelKeyPath]?
  let viewer: Viewer
  /// The target of the request, for the object as a whole.
  var target: Target?

  /// Returns the body of the response to a `GET`, and its tag. Nil if the object does not exist or the viewer may not
  /// read it.
  private func answer(
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

  /// Returns true if the viewer, who may read the object, gets the same response as everyone: it consists of stored
  /// keys of the object alone, none of which is hidden. Its tag is then the object's revision.
  func isSeenAlike(_ record: ObjectRecord) -> Bool {
    let entity = record.entity
    guard viewer.hiddenKeys(of: entity).isEmpty else { return false }
    guard let keyPaths else { return entity.keys.allSatisfy { $0.storage != nil } }
    return keyPaths.allSatisfy { path in
      path.keys.count == 1 && path.operation == nil && entity.keys[path.keys[0]].storage != nil
    }
  }

  /// Returns true if the viewer may read the object, and gets the same response as everyone.
  func isSeenAlike(in state: borrowing ModelState) -> Bool {
    guard let record = state.record(reference), isSeenAlike(record) else { return false }
    return viewer.mayRead(reference, record, in: copy state)
  }

  /// Returns the response to a write, which can no longer be refused. It has no body if the viewer may not read what
  /// was written, or if the body would exceed the limits.
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

  /// Returns the tag that a `GET` would give. Nil if the object does not exist or the viewer may not read it.
  func tag(in state: borrowing ModelState, epoch: String, _ limits: RequestLimits) -> String? {
    let budget = ReadingBudget(unlimitedBut: limits)
    return try? answer(in: budget.metered(copy state), budget, epoch: epoch)?.tag
  }

  /// Returns the response to a `GET`. `guarded` is the state as the viewer sees it. Throws `unknown-object`.
  func response(
    in guarded: GuardedReader<MeteredState>, of snapshot: Snapshot, _ budget: ReadingBudget,
    _ conditions: ReadConditions, _ store: Store
  ) throws(Problem) -> Response {
    let state = budget.metered(snapshot.state)
    guard let (bytes, tag) = try answer(in: guarded, state, budget, epoch: store.epoch) else {
      throw Problem(.unknownObject, "object \(reference) does not exist", object: reference)
    }
    let cursor = store.cursor(snapshot.revision)
    let isUnchanged = try conditions.isUnchanged(tag)
    var response = Response.json(bytes, cursor: cursor)
    response.fields[.eTag] = "\"\(tag)\""
    return isUnchanged ? response.notModified() : response
  }
}

/// The `ETag` of a response to a viewer who may not read everything. It is a digest of the body, so that it does not
/// change with what the body leaves out.
private struct ContentTag: Hashable, Sendable {
  /// The number of bytes of the digest in a tag.
  private static let byteCount = 16

  /// The tag without its quotation marks. It is never a valid cursor, since a cursor ends with a number.
  let text: String

  /// Creates the tag of a response body.
  init(of bytes: [UInt8], epoch: String) {
    var hash = SHA256()
    hash.update(bytes)
    text = "\(epoch)-c\(hash.finalize().prefix(Self.byteCount).hexadecimal)"
  }
}

extension ModelState {
  /// Returns the object with this reference, as `viewer` may read it. Throws `unknown-object` if it does not exist or
  /// the viewer may not read it, and `unknown-entity` if the schema has no such entity. The read rule is evaluated in
  /// this state, or in `metered`, the same state with its steps counted.
  func requireRecord(
    _ reference: Reference, for viewer: Viewer?, in metered: MeteredState? = nil
  ) throws(Problem) -> ObjectRecord {
    let record = try Problem.translating(try requireRecord(reference))
    guard let viewer else { return record }
    if let metered {
      guard !viewer.mayRead(reference, record, in: metered) else { return record }
      if let work = metered.work { try Problem.translating(try work.check()) }
    } else if viewer.mayRead(reference, record, in: self) {
      return record
    }
    throw Problem(.unknownObject, "object \(reference) does not exist", object: reference)
  }
}

extension Schema {
  /// Returns the key path of a text. If the text is invalid, the problem names the object and the text.
  func resolve(_ text: String, from entity: Entity, of reference: Reference) throws(Problem) -> ModelKeyPath {
    do throws(ModelError) {
      return try resolve(text, from: entity)
    } catch {
      throw Problem(ModelError(error.code, error.detail, object: reference, keyPath: text))
    }
  }
}
