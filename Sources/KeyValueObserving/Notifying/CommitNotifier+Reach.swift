import KeyValueModel

/// What depends on a key: observations, and those that read it through watched collections.
extension CommitNotifier {
  /// An observation that a key reaches, by one of the ways.
  struct Reached {
    let id: ObserverIndex.TrackedID
    /// The computed keys on the way, outermost first.
    let gates: [ObservedKey]
    /// Whether the way leads through no collection.
    let isDirect: Bool
    /// The key of an open bracket, the first opened of several, that one of the computed keys reads as well; nil where
    /// there is none, or where none was looked for.
    let holder: ObservedKey?
    /// Whether the key only says whether an object may be read.
    let isOfRule: Bool
  }

  /// The part of a way between a key and what depends on it.
  private struct Stretch {
    var gates: [ObservedKey] = []
    var isDirect = true
    var holder: ObservedKey?
    var isOfRule = false
    let isFindingHolders: Bool
  }

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
    if stretch.isFindingHolders { longer.holder = earlier(stretch.holder, holder(of: dependency, of: dependencies)) }
    return longer
  }

  // MARK: Brackets on the way

  /// The first opened of the brackets around what the computed keys of a dependency read. The outermost of them reads
  /// everything that the others read.
  private mutating func holder(of dependency: Dependency, of dependencies: [Dependency]) -> ObservedKey? {
    guard let gate = dependency.gates.first else { return nil }
    var holder: ObservedKey?
    for other in dependencies where other.gates.first == gate {
      let key = other.observedKey
      holder = earlier(holder, key.isCollection ? holderOfWatch(key) : brackets[key] == nil ? nil : key)
    }
    return holder
  }

  private func earlier(_ left: ObservedKey?, _ right: ObservedKey?) -> ObservedKey? {
    guard let left, let right else { return left ?? right }
    return brackets[left]?.number ?? 0 < brackets[right]?.number ?? 0 ? left : right
  }

  /// The first opened of the brackets around what is read of a collection's members.
  mutating func holderOfWatch(_ watch: ObservedKey) -> ObservedKey? {
    if let holdersOfWatches { return holdersOfWatches[watch] }
    var found: [ObservedKey: ObservedKey] = [:]
    for (key, _) in brackets.sorted(by: { $0.value.number < $1.value.number }) {
      var reading = [key]
      while let next = reading.popLast() {
        for link in index.collections.links(dependingOn: next) where found[link.watch] == nil {
          found[link.watch] = key
          reading.append(link.watch)
        }
      }
    }
    holdersOfWatches = found
    return found[watch]
  }
}
