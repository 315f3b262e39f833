/// What came of an attempt to commit a batch.
struct WriteAttempt {
  var actions: [@Sendable (StoreUnavailable?) -> Void] = []
  var failure: StoreUnavailable?
  /// Whether another node was first: what it left was read, and the same writes have to be judged by that.
  var isOvertaken = false
}
