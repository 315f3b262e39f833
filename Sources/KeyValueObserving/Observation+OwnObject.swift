package import KeyValueModel

extension Observation {
  /// More observations than these are not looked at one by one.
  private static let countLookedAt = 64

  /// Those of consecutive commits that can concern these observations, where they all read their own objects and
  /// nothing else: the ones that write an object of theirs or bracket a key of it. All others leave them and what they
  /// read as they are, so that the state before these commits is, for them, the state before all. `present` is the
  /// state after the last. Nil where that is not known without more work: a path leads to other objects, a rule
  /// decides, or they are many.
  package static func commits(
    _ commits: some Collection<Commit>, concerning observations: some Collection<Observation>, in present: ModelState
  ) -> [Commit]? {
    guard observations.count <= countLookedAt else { return nil }
    var entities: [Reference: Entity] = [:]
    for observation in observations {
      guard let entity = present.record(observation.object)?.entity, observation.readsItsObjectAlone(of: entity)
      else { return nil }
      entities[observation.object] = entity
    }
    var concerning: [Commit] = []
    for commit in commits {
      var isConcerning = false
      for (object, record) in commit.before {
        guard let entity = entities[object] else { continue }
        // One that was not there, or was something else, may have read other objects.
        guard let record, record.entity === entity else { return nil }
        isConcerning = true
      }
      if !isConcerning { isConcerning = commit.touchesObject { entities[$0] != nil } }
      if isConcerning { concerning.append(commit) }
    }
    return concerning
  }

  /// Whether the value is read from the object alone, whatever its keys hold, while it is of this entity.
  private func readsItsObjectAlone(of entity: Entity) -> Bool { viewer == nil && entity.readsItselfAlone(reads) }
}

extension Entity {
  fileprivate func readsItselfAlone(_ tree: KeyTree) -> Bool {
    tree.branches.allSatisfy { branch in
      guard branch.behind.isEmpty else { return false }
      guard case .computed(let computed) = keys[branch.key].kind else { return true }
      return ([computed.reads] + computed.inheritedReads).allSatisfy(readsItselfAlone)
    }
  }
}
