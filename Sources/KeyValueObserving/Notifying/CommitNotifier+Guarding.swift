import KeyValueModel

/// Observations of viewers who may not read everything (the specification, section 11).
extension CommitNotifier {
  /// Those of what a key reaches that need to be looked at: the key only says what may be read, or something of the
  /// path may not be. The `plain` others are notified like any.
  mutating func findGuarded(
    _ reached: [Reached]
  ) -> (guarded: Set<ObserverIndex.TrackedID>, plain: Set<ObserverIndex.TrackedID>) {
    guard index.guardedCount > 0 else { return ([], []) }
    var found: Set<ObserverIndex.TrackedID> = []
    var plain: Set<ObserverIndex.TrackedID> = []
    for entry in reached {
      guard let observation = index.tracked[entry.id]?.observation, let viewer = observation.viewer else { continue }
      let guarding = guarding ?? beginGuarding()
      guarding.touched.insert(entry.id)
      let isPlain = entry.isDirect && !entry.isOfRule && guarding.seesAll(along: observation, for: viewer, in: state)
      if isPlain { plain.insert(entry.id) } else { found.insert(entry.id) }
    }
    return (found.subtracting(plain), plain)
  }

  private mutating func beginGuarding() -> CommitGuard {
    guard let commit else { preconditionFailure("a commit is under way") }
    let begun = CommitGuard(commit, state: state)
    guarding = begun
    return begun
  }

  /// What is seen by those that are looked at, as what was.
  mutating func guardedValues(of ids: Set<ObserverIndex.TrackedID>) -> [ObserverIndex.TrackedID: Value] {
    var values: [ObserverIndex.TrackedID: Value] = [:]
    workOut(ids, isBefore: true)
    for id in ids { values[id] = observedValue(of: id, isBefore: true) }
    return values
  }

  /// Notifies those of the looked at that see another value than they were told last.
  mutating func notifyGuarded(
    _ ids: Set<ObserverIndex.TrackedID>, olds: [ObserverIndex.TrackedID: Value]
  ) {
    guard !ids.isEmpty, let guarding else { return }
    workOut(ids)
    var triggers: [ObserverIndex.TrackedID: Trigger] = [:]
    var wanted: [ObserverIndex.TrackedID: Value] = [:]
    for id in ids {
      guard let entry = index.tracked[id], let new = observedValue(of: id), let old = guarding.told[id] ?? olds[id],
        old != new
      else { continue }
      guarding.told[id] = new
      triggers[id] = Trigger(keyPosition: 0, depth: 0)
      if entry.observation.options.contains(.old) { wanted[id] = old }
    }
    notify(triggers, olds: wanted)
  }

  /// Ends the observations of objects that their viewers may not read any more, as if these were deleted.
  mutating func endUnreadableObservations(_ gone: inout [ObserverID: Set<ObserverEvent.Gone>]) {
    for id in guarding?.touched ?? [] {
      guard let guarding, let entry = index.tracked[id], let viewer = entry.observation.viewer,
        !guarding.sight(of: entry.observation.object, for: viewer).after
      else { continue }
      gone[entry.observer, default: []].insert(.init(of: entry.observation, in: entry.cell))
      index.end(id)
    }
  }
}
