import KeyValueModel

/// What came of an attempt to commit a batch.
struct WriteAttempt {
  var actions: [@Sendable (StoreUnavailable?) -> Void] = []
  var failure: StoreUnavailable?
  /// Whether another node was first: what it left was read, and the same writes have to be judged by that.
  var isOvertaken = false

  /// Refuses a write for which the other nodes leave no room, by the state that is published.
  static func refusing(_ submission: StoreSubmission, _ snapshot: Snapshot) -> WriteAttempt {
    let action = submission.conclude(
      .failure(ModelError(.staleRevision, "other nodes write")), snapshot.state, snapshot.revision)
    return WriteAttempt(
      actions: [action], failure: StoreUnavailable(reason: "other nodes write faster than this one can"))
  }
}
