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

/// How long the writer took for the writes of each client.
struct WriterTimes {
  private var nanoseconds: [Int: Int64] = [:]

  /// The times in microseconds.
  var microseconds: [Int: Int] { nanoseconds.mapValues { Int($0 / 1_000) } }

  /// Adds the time that a write of a client took.
  mutating func add(_ time: Int64, to client: Int) { nanoseconds[client, default: 0] += time }

  /// Adds the time that writes took together, one of each of the clients, in proportion to their steps and equally
  /// where there are none.
  mutating func add(_ time: Int64, to clients: [Int], by steps: [Int]) {
    // One step more for each, so that there is something to divide by.
    let total = zip(clients, steps).reduce(0) { $0 + $1.1 + 1 }
    for (client, count) in zip(clients, steps) {
      add(Int64(Double(time) * Double(count + 1) / Double(total)), to: client)
    }
  }
}
