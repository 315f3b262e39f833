import KeyValueModel

/// The object, key path and viewer that observations of the same value have in common.
struct ValueKey: Hashable {
  let object: Reference
  let keyPath: ModelKeyPath
  let viewer: Viewer?

  /// The key of what an observation sees.
  init(_ observation: Observation) {
    (object, keyPath, viewer) = (observation.object, observation.keyPath, observation.viewer)
  }
}

/// Numbers for what observations see: those of one object, key path and viewer have one, so that what was worked out
/// for one of them is found for the others without comparing names.
struct ValueNumbers {
  private var known: [ValueKey: (number: Int, count: Int)] = [:]
  private var last = 0

  /// The number of what an observation sees, once more in use; always positive.
  mutating func retain(_ observation: Observation) -> Int {
    let key = ValueKey(observation)
    if let present = known[key] {
      known[key] = (present.number, present.count + 1)
      return present.number
    }
    last += 1
    known[key] = (last, 1)
    return last
  }

  /// Ends one use of the number of what an observation sees. With the last, the number is forgotten.
  mutating func release(_ observation: Observation) {
    let key = ValueKey(observation)
    guard let present = known[key] else { return }
    known[key] = present.count > 1 ? (present.number, present.count - 1) : nil
  }
}
