import KeyValueModel
import KeyValueObserving

/// An object that a cell showed until it was deleted, or could no longer be read, and that it shows no longer.
struct LostObject {
  let object: Reference
  /// When the cell received `gone`, or was to receive it.
  let position: StreamPosition
  /// What the cell observed of it.
  var observations: [Observation] = []
}

/// An event that told a cell its state, or what it had missed, and not what a commit did.
struct CellRefresh: Hashable {
  /// Those with the same number were one event; later ones have higher numbers.
  let number: Int
  /// Whether no earlier event of the stream can have had the same id: then a client that has the id has the event.
  let isFirstOfID: Bool
}
