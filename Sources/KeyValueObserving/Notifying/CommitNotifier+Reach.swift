import KeyValueModel

/// What depends on a key: observations, and those that read it through watched collections.
extension CommitNotifier {
  /// The observations that depend on a key, once for each way.
  mutating func reach(_ key: ObservedKey, findingHolders isFindingHolders: Bool = false) -> [Reached] {
    var reached: [Reached] = []
    reach(key, by: Stretch(isFindingHolders: isFindingHolders), into: &reached)
    return reached
  }

  private mutating func reach(_ key: ObservedKey, by stretch: Stretch, into reached: inout [Reached]) {
    for id in listeners(to: key).map(\.id) {
      let dependencies = index.tracked[id]?.dependencies ?? []
      for dependency in dependencies where dependency.observedKey == key {
        let whole = longer(stretch, by: dependency, of: dependencies)
        reached.append(
          Reached(
            id: id, gates: whole.gates, isDirect: stretch.isDirect, holder: whole.holder,
            isOfRule: whole.isOfRule))
      }
    }
    guard !index.collections.isEmpty else { return }
    // A fold reads a collection and its members: what depends on the fold depends on both.
    for link in index.collections.links(dependingOn: key) {
      let dependencies = index.collections.dependencies(of: link)
      for dependency in dependencies where dependency.observedKey == key {
        var next = longer(stretch, by: dependency, of: dependencies)
        next.isDirect = false
        reach(link.watch, by: next, into: &reached)
      }
    }
  }

  /// A stretch and one more dependency, which is one of several of the same observation or member.
  private mutating func longer(
    _ stretch: Stretch, by dependency: Dependency, of dependencies: [Dependency]
  ) -> Stretch {
    var longer = stretch
    longer.gates = dependency.gates + stretch.gates
    longer.isOfRule = stretch.isOfRule || dependency.isOfRule
    if stretch.isFindingHolders {
      longer.holder = brackets.earlier(
        stretch.holder, brackets.holder(of: dependency, of: dependencies, index.collections))
    }
    return longer
  }
}

/// An observation that a key reaches, by one of the ways.
struct Reached {
  let id: ObserverIndex.TrackedID
  /// The computed keys on the way, outermost first.
  let gates: [ObservedKey]
  /// True if the way leads through no collection.
  let isDirect: Bool
  /// The key of an open bracket, the first opened of several, that one of the computed keys reads as well; nil where
  /// there is none, or where none was looked for.
  let holder: ObservedKey?
  /// True if the key only says whether an object may be read.
  let isOfRule: Bool
}

/// The part of a way between a key and what depends on it.
struct Stretch {
  var gates: [ObservedKey] = []
  var isDirect = true
  var holder: ObservedKey?
  var isOfRule = false
  let isFindingHolders: Bool
}

extension ObserverIndex {
  /// True if the path of an observation that was reached ends at a collection key.
  func isEnd(_ key: ObservedKey, of entry: Reached) -> Bool {
    guard entry.isDirect, entry.gates.isEmpty, let path = tracked[entry.id]?.observation.keyPath else { return false }
    return path.operation == nil && path.keys.last == key.key
  }
}
