internal import KeyValueModel
internal import KeyValueObserving
internal import OrderedCollections

/// A named slot of a stream that shows one object at a time.
struct Cell {
  var binding: CellBinding
  /// What it observes; empty while it shows nothing.
  var observations: [Observation] = []
  /// What it was not told while it was off screen or its stream suspended; nil while it is told everything.
  var pending: PendingChanges?
  /// Whether it was bound while it was told nothing, and is still owed its first state.
  var isOwedInitial = false
  /// How many events it was told.
  var told = 0

  /// The cell as `GET` shows it.
  func described(as name: String) -> JSONObject {
    var body: JSONObject = ["cell": .string(name)]
    for (key, value) in binding.described.members { body[key] = value }
    body["pending"] = .integer(Int64(pending?.commits ?? 0))
    body["told"] = .integer(Int64(told))
    return body
  }
}
