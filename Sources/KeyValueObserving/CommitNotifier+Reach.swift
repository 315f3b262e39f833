internal import KeyValueModel

/// Who depends on a key: observations, and those that read it through watched collections.
extension CommitNotifier {
  /// An observation that a key reaches, by one of the ways.
  struct Reached {
    let id: ObserverIndex.TrackedID
    /// How many computed keys are on the way.
    let depth: Int
    /// Those computed keys.
    let gates: [ObservedKey]
    /// Whether the way leads through no collection.
    let isDirect: Bool
  }

  /// The observations that depend on a key, once for each way.
  mutating func reach(_ key: ObservedKey) -> [Reached] {
    var reached: [Reached] = []
    reach(key, depth: 0, gates: [], isDirect: true, into: &reached)
    return reached
  }

  private mutating func reach(
    _ key: ObservedKey, depth: Int, gates: [ObservedKey], isDirect: Bool, into reached: inout [Reached]
  ) {
    for id in listeners(to: key) {
      for dependency in index.tracked[id]?.dependencies ?? [] where dependency.observedKey == key {
        reached.append(
          Reached(
            id: id, depth: depth + dependency.depth, gates: dependency.gates + gates, isDirect: isDirect))
      }
    }
    guard !index.collections.isEmpty else { return }
    // A fold reads a collection and its members: whoever depends on the fold depends on both.
    for link in index.collections.links(dependingOn: key) {
      for dependency in index.collections.dependencies(of: link) where dependency.observedKey == key {
        reach(
          link.watch, depth: depth + dependency.depth, gates: dependency.gates + gates, isDirect: false,
          into: &reached)
      }
    }
  }
}
