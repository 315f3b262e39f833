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
