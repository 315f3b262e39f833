import KeyValueModel

extension RequestContext {
  /// What the rules let the requester read; nil where they are asked no rule.
  var viewer: Viewer? { requester.viewer }
}

extension ModelState {
  /// The object of this name, as someone who may read what `viewer` may sees it. Throws `unknown-object` also where it
  /// may not be read; `unknown-entity` where the schema has no such entity.
  func requireRecord(_ reference: Reference, for viewer: Viewer?) throws(Problem) -> ObjectRecord {
    let record = try Problem.translating(try requireRecord(reference))
    guard let viewer, !viewer.mayRead(reference, record, in: self) else { return record }
    throw Problem(.unknownObject, "there is no object \(reference)", object: reference)
  }

  /// The same by a reader of the state that leaves out what may not be read, which then knows the answer.
  func requireRecord(
    _ reference: Reference, in guarded: GuardedReader<MeteredState>?
  ) throws(Problem) -> ObjectRecord {
    let record = try Problem.translating(try requireRecord(reference))
    guard let guarded, guarded.record(reference) == nil else { return record }
    // Once the steps are used up, nothing is found.
    if let work = guarded.work { try Problem.translating(try work.check()) }
    throw Problem(.unknownObject, "there is no object \(reference)", object: reference)
  }

  /// Whether an object is there for a viewer.
  func isThere(_ reference: Reference, for viewer: Viewer?) -> Bool {
    guard let record = record(reference) else { return false }
    return viewer.map { $0.mayRead(reference, record, in: self) } ?? true
  }
}
