/// What the application of a JSON patch may make and take.
struct JSONPatchLimits {
  /// The most values, at any depth, of the document and of all that is added and copied to it.
  var nodes = 1_000_000
  /// The most levels of what is added.
  var depth = 64
  /// The most bytes of the document, as `Value.textBytes` counts them. One that is larger already may still shrink.
  var documentBytes = Int.max
  /// The most bytes of all that is added and copied.
  var addedBytes = Int.max
  /// The most steps; see `TransactionLimits.steps`.
  var steps = Int.max
}
