/// A state with objects as they are to be: some that could not be made, and some that are to be changed.
struct IntendedState<Base: ObjectReader>: ObjectReader {
  let base: Base
  /// The objects as they are to be; the others are as they are.
  var intents: [Reference: ObjectRecord]

  func record(_ reference: Reference) -> ObjectRecord? { intents[reference] ?? base.record(reference) }
}
