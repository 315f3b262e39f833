import KeyValueModel

/// Works out what one commit tells each observer, operation by operation, walking from the state before to the state
/// after. Knows nothing but these states and the index.
struct CommitNotifier {
  var index: ObserverIndex
  var state: PastState
  /// What the commit has for each observer.
  var notifications: CollectedNotifications
  /// What observers see between two operations, and what it may cost to work that out.
  var values: StateValues
  /// The observations of overflowed observers that this commit has touched: not in the index for the rest of it.
  var unwired: [ObserverIndex.TrackedID] = []
  /// Those of observers that miss the rest of the commits: not in the index until all have been told.
  var missing: [ObserverIndex.TrackedID] = []
  var brackets = OpenBrackets()
  /// What was written since the first of the open brackets.
  var log = UndoLog()
  /// What observers saw last of the values that changed inside a bracket and of which they were not notified yet.
  var withheld: [ObserverIndex.TrackedID: Withheld] = [:]
  /// What those may see who may not read everything; nil where none of them observes what the commit touches.
  var guarding: CommitGuard?
  /// The commit under way.
  var commit: Commit?

  /// Takes the index away from the caller until `giveBack`: with a second owner, each change of it would be a copy.
  init(
    taking index: inout ObserverIndex, state: consuming PastState, changesPerObserver: Int, bytesPerObserver: Int,
    budget: ObservationBudget
  ) {
    self.index = ObserverIndex()
    self.state = state
    notifications = CollectedNotifications(changesPerObserver: changesPerObserver, bytesPerObserver: bytesPerObserver)
    values = StateValues(budget)
    swap(&self.index, &index)
  }

  /// Puts the index where the caller has it, and has none any more.
  mutating func giveBack(to index: inout ObserverIndex) { swap(&self.index, &index) }

  /// What the commit tells, by observer; those that hear nothing are not there.
  mutating func events(of commit: Commit) -> [ObserverEvent] {
    self.commit = commit
    values.begin(commit)
    let followed = index.collections.followed
    for step in commit.steps {
      switch step.kind {
      case .change(let changes): notify(step, changes)
      case .willChange(let object, let key): open(ObservedKey(object: object, key: key))
      case .didChange(let object, let key): close(ObservedKey(object: object, key: key))
      }
    }
    let gone = endGoneObservations(commit)
    endBrackets()
    defer {
      guarding = nil
      self.commit = nil
      notifications.removeAll()
      values.count((index.collections.followed - followed) * ObservationBudget.stepsPerLink)
      values.forget()
      if missing.isEmpty { index.sweep() }
    }
    return notifications.events(of: commit, gone: gone) { index.observes($0) }
  }

  /// Ends what was registered with objects that the commit deleted; gives that by observer.
  private mutating func endGoneObservations(_ commit: Commit) -> [ObserverID: [ObserverEvent.Gone]] {
    var gone: [ObserverID: Set<ObserverEvent.Gone>] = [:]
    for (object, record) in commit.before where record != nil && state.record(object) == nil {
      for id in index.ids(of: object) {
        guard let entry = index.tracked[id] else { continue }
        gone[entry.observer, default: []].insert(.init(of: entry.observation, in: entry.cell))
        index.end(id)
      }
    }
    endUnreadableObservations(&gone)
    endOverflow(&gone)
    return gone.mapValues(ObserverEvent.Gone.inOrder)
  }

  // MARK: One operation

  private mutating func notify(_ step: Commit.Step, _ changes: [Commit.KeyChange]) {
    var touched = touch(step, changes)
    guard !touched.isNothing else { return apply(step) }
    let gateValues = gateValues(of: touched.gated)
    var olds = oldValues(of: touched.triggers.keys)
    if !touched.gated.isEmpty { olds.merge(oldValues(of: touched.gated.lazy.map(\.id))) { first, _ in first } }
    olds.merge(guardedValues(of: touched.guarded)) { first, _ in first }
    apply(step)
    for id in touched.redirected { index.rewire(id, in: state) }
    if !index.collections.isEmpty {
      index.collections.update(changes, rewiring: touched.redirectedLinks, in: state)
      if touched.isRewiring { brackets.forgetHolders() }
    }
    for entry in touched.gated where owes(entry.id) || passes(entry.gates, valuesBefore: gateValues, for: entry.id) {
      touched.triggers.merge(entry.trigger, for: entry.id)
    }
    notify(touched.triggers, olds: olds)
    notifyGuarded(touched.guarded, olds: olds)
  }

  private mutating func touch(_ step: Commit.Step, _ changes: [Commit.KeyChange]) -> TouchedObservations {
    var touched = TouchedObservations()
    // Objects that come or go change what every path through them depends on.
    let reshapes = step.writes.contains { $0.record == nil || state.record($0.object) == nil }
    let hasCollections = changes.contains { $0.collection != nil }
    var silenced: [(reached: [Reached], key: ObservedKey)] = []
    for (position, change) in changes.enumerated() {
      let key = ObservedKey(object: change.object, key: change.key)
      if !index.collections.isEmpty { touchLinks(key, isLink: reshapes || state.isLink(key), &touched) }
      let reached = reach(key, findingHolders: !brackets.isEmpty)
      guard !reached.isEmpty else { continue }
      touched.isNothing = false
      if reshapes || state.isLink(key) { touched.redirected.formUnion(reached.lazy.filter(\.isDirect).map(\.id)) }
      let (guarded, plain) = findGuarded(reached)
      touched.guarded.formUnion(guarded)
      touched.plain.formUnion(plain)
      let heard = guarding == nil ? reached : reached.filter { !$0.isOfRule && !guarded.contains($0.id) }
      withhold(heard, key)
      if hasCollections {
        for entry in heard {
          if let other = touched.onlyPosition.updateValue(position, forKey: entry.id), other != position {
            touched.onlyPosition.updateValue(nil, forKey: entry.id)
          }
        }
      }
      guard brackets[key] == nil else { continue }
      guard !change.isSilent else {
        if !brackets.isEmpty, state.notifying(key) == .manual { silenced.append((heard, key)) }
        continue
      }
      hold(heard)
      for entry in heard where entry.holder == nil {
        var trigger = Trigger(keyPosition: position, depth: entry.gates.count)
        if let collection = change.collection, withheld[entry.id] == nil, index.isEnd(key, of: entry) {
          trigger.collection = collection
        }
        if entry.gates.isEmpty {
          touched.triggers.merge(trigger, for: entry.id)
        } else if isOpenToChanges(entry.gates) {
          touched.gated.append((entry.id, trigger, entry.gates))
        }
      }
    }
    for entry in silenced { noteSilence(entry.reached, of: entry.key) }
    touched.guarded.subtract(touched.plain)
    // A path that leads elsewhere as well, or a collection that was changed in more ways, is set.
    for (id, position) in touched.onlyPosition where position == nil { touched.triggers[id]?.collection = nil }
    return touched
  }

  /// Notes the members of watched collections that depend on a key.
  private mutating func touchLinks(_ key: ObservedKey, isLink: Bool, _ touched: inout TouchedObservations) {
    if !index.collections.watches(of: key).isEmpty {
      touched.isNothing = false
      touched.isReshaping = true
    }
    let links = index.collections.links(dependingOn: key)
    guard !links.isEmpty else { return }
    touched.isNothing = false
    if isLink { touched.redirectedLinks.formUnion(links) }
    index.collections.touch(key)
  }

  /// Goes on to the state after an operation; what was there before is kept for open brackets.
  private mutating func apply(_ step: Commit.Step) {
    if !brackets.isEmpty {
      for (object, _) in step.writes { log.append(object, state.record(object)) }
    }
    values.forget()
    state.apply(step)
  }

  /// Remembers the values of the observations that depend on a key that is about to be set inside a bracket, its own or
  /// one of a computed key before it: their next notification has this as its old value.
  private mutating func withhold(_ reached: [Reached], _ key: ObservedKey) {
    guard !brackets.isEmpty else { return }
    for entry in reached where withheld[entry.id]?.isHeard != true {
      guard brackets[key] != nil || entry.gates.contains(where: { brackets[$0] != nil }) else { continue }
      if withheld[entry.id] == nil { withheld[entry.id] = observedValue(of: entry.id).map { Withheld(value: $0) } }
      withheld[entry.id]?.isHeard = true
    }
  }

  /// What the observers saw last, of those that want to be told.
  mutating func oldValues(of ids: some Sequence<ObserverIndex.TrackedID>) -> [ObserverIndex.TrackedID: Value] {
    let wanted = ids.filter { index.tracked[$0]?.observation.options.contains(.old) ?? false }
    workOut(withheld.isEmpty ? wanted : wanted.filter { withheld[$0] == nil }, isBefore: true)
    var values: [ObserverIndex.TrackedID: Value] = [:]
    for id in wanted { values[id] = withheld[id]?.value ?? observedValue(of: id, isBefore: true) }
    return values
  }

  /// Appends priors and changes of one operation to each observer's notifications: the priors in order, the changes as
  /// their mirror image. Those that are `announced` have had their prior.
  mutating func notify(
    _ triggers: [ObserverIndex.TrackedID: Trigger], olds: [ObserverIndex.TrackedID: Value],
    announced: Set<ObserverIndex.TrackedID> = []
  ) {
    workOut(triggers.evaluated(in: index))
    var byObserver: [ObserverID: [ObserverIndex.TrackedID]] = [:]
    for id in triggers.keys {
      guard let entry = index.tracked[id] else { continue }
      byObserver[entry.observer, default: []].append(id)
    }
    for (observer, ids) in byObserver {
      let ordered = triggers.sorted(ids, in: index)
      for id in ordered where !announced.contains(id) {
        appendPrior(id, old: olds[id], triggers[id]?.collection)
      }
      for id in ordered.reversed() { appendChange(id, old: olds[id], triggers[id]?.collection, to: observer) }
    }
  }

  mutating func appendPrior(
    _ id: ObserverIndex.TrackedID, old: Value?, _ collection: Commit.CollectionChange? = nil
  ) {
    guard let entry = index.tracked[id], entry.observation.options.contains(.prior),
      notifications.hasRoom(for: entry.observer)
    else { return }
    let isOldWanted = entry.observation.options.contains(.old)
    let change = Change(
      cell: entry.cell, observation: entry.observation, kind: collection.map { .init($0.kind) } ?? .setting,
      indexes: collection?.indexes, old: isOldWanted ? collection.map { .array($0.removed) } ?? old : nil, new: nil,
      isPrior: true)
    append(change, of: id, for: entry.observer)
  }

  mutating func appendChange(
    _ id: ObserverIndex.TrackedID, old: Value?, _ collection: Commit.CollectionChange?, to observer: ObserverID
  ) {
    guard let entry = index.tracked[id], notifications.hasRoom(for: observer) else { return }
    withheld[id] = nil
    var change: Change
    if let collection {
      change = Change(
        of: entry.observation, cell: entry.cell, kind: .init(collection.kind), indexes: collection.indexes,
        removed: collection.removed, inserted: collection.inserted)
      change.touched = collection.touched
    } else {
      let isNewWanted = entry.observation.options.contains(.new)
      change = Change(of: entry.observation, cell: entry.cell, old: old, new: isNewWanted ? observedValue(of: id) : nil)
      guard !notifications.overflowed.contains(observer) else { return }
    }
    append(change, of: id, for: observer)
  }
}

extension CommitNotifier: ObjectReader {
  /// The object as it stands between the operations told and those to be told.
  func record(_ reference: Reference) -> ObjectRecord? { values.meter.spend() ? state.record(reference) : nil }

  /// The work that evaluation is counted as.
  var work: ReadingWork? { values.meter }

  /// What is known of the watched collections.
  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? {
    index.collections.folds.folded(fold, of: owner)
  }
}

extension Commit.CollectionChange {
  /// The members that came or went: mostly one of the two lists, which then is shared.
  fileprivate var touched: [Value] {
    if removed.isEmpty { return inserted }
    return inserted.isEmpty ? removed : removed + inserted
  }
}

extension Change.Kind {
  /// The kind of a collection's change.
  init(_ kind: Commit.CollectionChange.Kind) {
    switch kind {
    case .insertion: self = .insertion
    case .removal: self = .removal
    case .replacement: self = .replacement
    }
  }
}

extension [ObserverIndex.TrackedID: Trigger] {
  /// By key, nearness, cell and place: nothing that depends on the order of registration, except among observations
  /// that are identical.
  func sorted(_ ids: [ObserverIndex.TrackedID], in index: ObserverIndex) -> [ObserverIndex.TrackedID] {
    guard ids.count > 1 else { return ids }
    return
      ids
      .compactMap { id in index.tracked[id].map { (id, $0, self[id] ?? Trigger(keyPosition: 0, depth: 0)) } }
      .sorted { left, right in
        let leftRank = (left.2.keyPosition, left.2.depth, left.1.cell ?? "", left.1.position, left.0)
        let rightRank = (right.2.keyPosition, right.2.depth, right.1.cell ?? "", right.1.position, right.0)
        return leftRank < rightRank
      }
      .map(\.0)
  }

  /// Those of which a new value is told that has to be worked out.
  func evaluated(in index: ObserverIndex) -> [ObserverIndex.TrackedID] {
    keys.filter { self[$0]?.collection == nil && index.tracked[$0]?.observation.options.contains(.new) ?? false }
  }

  /// Keeps the first reason that an observation has to hear of an operation.
  mutating func merge(_ trigger: Trigger, for id: ObserverIndex.TrackedID) {
    guard var present = self[id] else {
      self[id] = trigger
      return
    }
    if present.collection != trigger.collection {
      present.collection = nil
      self[id] = present
    }
    if (trigger.keyPosition, trigger.depth) < (present.keyPosition, present.depth) {
      self[id]?.keyPosition = trigger.keyPosition
      self[id]?.depth = trigger.depth
    }
  }
}
