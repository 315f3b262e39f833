import Crypto
import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support

/// An object, or what a key path of it reads, as someone sees it who may not read everything.
struct GuardedObject {
  let reference: Reference
  /// The key paths; nil for the object as a whole.
  var keyPaths: [ModelKeyPath]?
  let viewer: Viewer
  /// What the request asks of the object as a whole.
  var target: Target?

  /// The body of the answer to a `GET`, and its tag; nil where the object may not be read, or is not there.
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
      throw Problem(.unknownObject, "object \(reference) does not exist", object: reference)
    }
    let cursor = store.cursor(snapshot.revision)
    let isUnchanged = try conditions.isUnchanged(tag)
    var response = Response.json(bytes, cursor: cursor)
    response.fields[.eTag] = "\"\(tag)\""
    return isUnchanged ? response.notModified() : response
  }
}

/// The `ETag` of an answer to someone who may not read everything: it is made of the answer, so that it does not move
/// for what is left out of it.
private struct ContentTag: Hashable, Sendable {
  /// How many bytes of the digest are in a tag.
  private static let byteCount = 16

  /// The tag without its quotation marks. It is no cursor: those end with a number.
  let text: String

  /// The tag of an answer's body.
  init(of bytes: [UInt8], epoch: String) {
    var hash = SHA256()
    hash.update(bytes)
    text = "\(epoch)-c\(hash.finalize().prefix(Self.byteCount).hexadecimal)"
  }
}

extension ModelState {
  /// The object of this name, as someone who may read what `viewer` may sees it. Throws `unknown-object` also where it
  /// may not be read; `unknown-entity` where the schema has no such entity. The rule is asked of this state, or of the
  /// `metered` one that is as it, whose steps then count.
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
  /// The key path of a text; where there is none, the problem names the object and the text.
  func resolve(_ text: String, from entity: Entity, of reference: Reference) throws(Problem) -> ModelKeyPath {
    do throws(ModelError) {
      return try resolve(text, from: entity)
    } catch {
      throw Problem(ModelError(error.code, error.detail, object: reference, keyPath: text))
    }
  }
}
