/// The state as it was before the transaction that is changing it.
struct FormerState: ObjectReader {
  /// What stood there of the objects that were written.
  let before: RecordLog
  /// The state as it is by now.
  let state: ModelState

  func record(_ reference: Reference) -> ObjectRecord? {
    if let former = before[reference] { return former }
    return state.record(reference)
  }
}
