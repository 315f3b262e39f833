internal import KeyValueModel
internal import KeyValueObserving
internal import OrderedCollections

/// A named slot of a stream that shows one object, or one live query, at a time.
struct Cell {
  var binding: CellBinding
  /// What it observes of an object; empty while it shows none.
  var observations: [Observation] = []
  /// The live query that it shows.
  var query: Query?
  /// What it was not told while it was off screen or its stream suspended; nil while it is told everything.
  var pending: PendingChanges?
  /// What it was not told of its query; nil while it is told everything, and where it shows none.
  var missed: MissedContents?
  /// Whether it was bound while it was told nothing, and is still owed its first state.
  var isOwedInitial = false
  /// The revision at which it went off screen, while it is; nil while it is told everything, and where it was never told
  /// anything.
  var pausedAt: Revision?
  /// The object that it lost by its deletion, and when it was told so.
  var lost: (object: Reference, position: StreamPosition)?
  /// The revision at which it was last told anything but what a commit did: what it shows, or what it had missed.
  var refreshedAt: Revision = 0
  /// How many events it was told.
  var told = 0

  /// The cell as `GET` shows it.
  func described(as name: String) -> JSONObject {
    var body: JSONObject = ["cell": .string(name)]
    for (key, value) in binding.described.members { body[key] = value }
    body["pending"] = .integer(Int64((pending?.commits ?? 0) + (missed?.count ?? 0)))
    body["told"] = .integer(Int64(told))
    return body
  }
}
