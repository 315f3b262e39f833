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
    let opened = brackets.sorted { $0.value.number < $1.value.number }.map(\.key)
    let found = index.collections.firstReaders(of: opened)
    holdersOfWatches = found
    return found[watch]
  }
}
