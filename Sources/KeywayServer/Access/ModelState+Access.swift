import KeyValueModel

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
    throw Problem(.unknownObject, "there is no object \(reference)", object: reference)
  }
}
