import KeyValueModel

/// Determines the notifications of one commit for each observer, operation by operation, walking from the state before
/// to the state after. Depends on nothing but these states and the index.
struct CommitNotifier {
  private var index: ObserverIndex
  private var state: PastState
  /// The notifications of the commit for each observer.
  private var notifications: CollectedNotifications
  /// The observed values between two operations, and the budget for evaluating them.
  private(set) var values: StateValues
  /// The observations of overflowed observers that this commit has touched: detached from the index for the rest of the
  /// commit.
  private var unwired: [ObserverIndex.TrackedID] = []
  /// The observations of observers that miss the rest of the commits: detached from the index until the last commit is
  /// done.
  private var missing: [ObserverIndex.TrackedID] = []
  private var brackets = OpenBrackets()
  /// The log of the writes since the first of the open brackets.
  private var log = UndoLog()
  /// The values that observers saw last and that changed inside a bracket, without a notification so far.
  private var withheld: [ObserverIndex.TrackedID: Withheld] = [:]
  /// The guard for viewers who may not read everything; nil as long as none of them observes what the commit touches.
  private var guarding: CommitGuard?
  /// The commit in progress.
  private var commit: Commit?

  /// Takes the index from the caller until `returnIndex`. With a second owner, each change of the index would be a
  /// copy.
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

  /// Returns the index to the caller, and has none any more.
  mutating func returnIndex(to index: inout ObserverIndex) { swap(&self.index, &index) }

  // MARK: Consecutive commits

  /// The maximum number of objects that are looked for in commits.
  private static let objectsLookedFor = 64

  /// Passes each event of consecutive commits to `receive`, those of one commit before those of the next. With
  /// `isPassingOver`, commits that touch nothing that any observer reads are skipped.
  mutating func notify(
    _ commits: some BidirectionalCollection<Commit>, passingOver isPassingOver: Bool, receive: (ObserverEvent) -> Void
  ) {
    var objects = isPassingOver ? objectsRead(atMost: Self.objectsLookedFor) : nil
    for commit in commits {
      // Observations can end here, but none begins: once the index is idle, no observer is left to notify.
      guard !index.isIdle else { break }
      if let objects, !commit.touchesObject(where: objects.contains) {
        values.begin(commit)
        state.apply(commit)
        continue
      }
      events(of: commit).forEach(receive)
      if objects != nil { objects = objectsRead(atMost: Self.objectsLookedFor) }
    }
    if let last = commits.last { endMissing(at: last).forEach(receive) }
  }

  /// Returns the objects that the observed values are read through in the present state; nil if there are more than
  /// `limit`. A commit that writes none of them and brackets no key of one notifies no observer, and leaves all
  /// dependencies unchanged.
  private func objectsRead(atMost limit: Int) -> Set<Reference>? {
    guard index.tracked.count <= limit else { return nil }
    var objects: Set<Reference> = []
    for entry in index.tracked.values {
      objects.formUnion(entry.observation.objects(in: state))
      guard objects.count <= limit else { return nil }
    }
    return objects
  }

  // MARK: One commit

  /// Returns the events of the commit: one for each observer that is notified.
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

  /// Ends the observations of objects that the commit deleted or made unreadable. Returns the lost objects by observer.
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
    // If a path also leads elsewhere, or a collection was changed in several ways, the change is a setting.
    for (id, position) in touched.onlyPosition where position == nil { touched.triggers[id]?.collection = nil }
    return touched
  }

  /// Records the members of watched collections that depend on a key.
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

  /// Advances to the state after an operation. While brackets are open, the previous records go to the log.
  private mutating func apply(_ step: Commit.Step) {
    if !brackets.isEmpty {
      for (object, _) in step.writes { log.append(object, state.record(object)) }
    }
    values.forget()
    state.apply(step)
  }

  /// Stores the values of the observations that depend on a key that is about to be set inside a bracket, its own or
  /// one of a computed key before it. Such a value is the old value of the next notification.
  private mutating func withhold(_ reached: [Reached], _ key: ObservedKey) {
    guard !brackets.isEmpty else { return }
    for entry in reached where withheld[entry.id]?.isHeard != true {
      guard brackets[key] != nil || entry.gates.contains(where: { brackets[$0] != nil }) else { continue }
      if withheld[entry.id] == nil { withheld[entry.id] = observedValue(of: entry.id).map { Withheld(value: $0) } }
      withheld[entry.id]?.isHeard = true
    }
  }

  /// Returns the values that observers saw last, for observations that request old values.
  private mutating func oldValues(of ids: some Sequence<ObserverIndex.TrackedID>) -> [ObserverIndex.TrackedID: Value] {
    let wanted = ids.filter { index.tracked[$0]?.observation.options.contains(.old) ?? false }
    workOut(withheld.isEmpty ? wanted : wanted.filter { withheld[$0] == nil }, isBefore: true)
    var values: [ObserverIndex.TrackedID: Value] = [:]
    for id in wanted { values[id] = withheld[id]?.value ?? observedValue(of: id, isBefore: true) }
    return values
  }

  /// Appends priors and changes of one operation to each observer's notifications: the priors in order, then the
  /// changes in reverse order. Observations that are `announced` have had their prior.
  private mutating func notify(
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

  private mutating func appendPrior(
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

  private mutating func appendChange(
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

// MARK: - Reach

/// The observations that depend on a key, directly or through watched collections.
extension CommitNotifier {
  /// Returns the observations that depend on a key, once for each way.
  private mutating func reach(_ key: ObservedKey, findingHolders isFindingHolders: Bool = false) -> [Reached] {
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

  /// Returns a stretch that is extended by one more dependency, which is one of `dependencies` of the same observation
  /// or member.
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

// MARK: - Brackets

/// Brackets: the notifications at the outermost `didChange`, and the retraction of priors.
extension CommitNotifier {
  private mutating func open(_ key: ObservedKey) {
    if brackets[key] != nil {
      brackets[key]?.depth += 1
      return
    }
    let reached = reach(key)
    let triggers = bracketTriggers(reached)
    let olds = oldValues(of: triggers.keys)
    var bracket = Bracket(number: brackets.opened, logStart: log.count, dependents: Set(reached.map(\.id)))
    for id in triggers.sorted(Array(triggers.keys), in: index) {
      guard let entry = index.tracked[id], entry.observation.options.contains(.prior) else { continue }
      bracket.priors.append(
        .init(id: id, observer: entry.observer, position: notifications.count(of: entry.observer)))
      appendPrior(id, old: olds[id])
    }
    brackets.open(key, bracket)
  }

  private mutating func close(_ key: ObservedKey) {
    guard var bracket = brackets[key] else { return }
    bracket.depth -= 1
    guard bracket.depth == 0 else {
      brackets[key] = bracket
      return
    }
    brackets.close(key)
    defer { if brackets.isEmpty { log.removeAll() } }
    let start = StateAtWillChange(log: log, start: bracket.logStart, state: state, work: work)
    var before = GatesAtWillChange(state: start)
    let reached = reach(key)
    // An observation that only came to depend on the key inside the bracket was notified by the change that caused
    // that.
    var triggers = bracketTriggers(reached, before: &before).filter {
      bracket.dependents.contains($0.key) || withheld[$0.key]?.isHeard == true
    }
    if state.notifying(key) == .changed, hasSameValue(key, as: start) {
      // Silent, except for observers of something behind the key that changed while the key led elsewhere.
      triggers = triggers.filter { owes($0.key) }
    }
    release(bracket.held, heldBy: key, before: &before, into: &triggers)
    retract(bracket.priors.filter { triggers[$0.id] == nil })
    notify(triggers, olds: oldValues(of: triggers.keys), announced: Set(bracket.priors.map(\.id)))
  }

  /// True if a key has the value that it had in an earlier state.
  private func hasSameValue(_ key: ObservedKey, as former: StateAtWillChange) -> Bool {
    // Remembered results are valid for one state only.
    work?.forget()
    let before = former.value(of: key.object, key: key.key)
    work?.forget()
    return before.isWrittenAlike(value(of: key.object, key: key.key))
  }

  /// Holds back a change from the observations that it reaches through a computed key of which another input is inside
  /// a bracket. Must be called before the change is applied.
  private mutating func hold(_ reached: [Reached]) {
    for entry in reached {
      guard let holder = entry.holder, isOpenToChanges(entry.gates) else { continue }
      let way = HeldWay(bracket: holder, gates: entry.gates)
      if withheld[entry.id] == nil { withheld[entry.id] = observedValue(of: entry.id).map { Withheld(value: $0) } }
      withheld[entry.id]?.ways.insert(way)
      withheld[entry.id]?.isHeard = true
      brackets[holder]?.held.insert(entry.id)
    }
  }

  /// Adds the changes of other keys that a bracket held back, if the observer was not notified in between.
  private mutating func release(
    _ held: Set<ObserverIndex.TrackedID>, heldBy key: ObservedKey, before: inout GatesAtWillChange,
    into triggers: inout [ObserverIndex.TrackedID: Trigger]
  ) {
    for id in held {
      var nearest: Int?
      for way in withheld[id]?.ways ?? [] where way.bracket == key {
        withheld[id]?.ways.remove(way)
        guard isOpenToChanges(way.gates) else { continue }
        guard owes(id) || passes(way.gates, before: &before, for: id) else { continue }
        nearest = min(nearest ?? .max, way.gates.count)
      }
      if let nearest, triggers[id] == nil { triggers[id] = Trigger(keyPosition: 0, depth: nearest) }
    }
  }

  /// Removes the brackets of a commit, and the changes that they held back.
  private mutating func endBrackets() {
    brackets = OpenBrackets()
    log.removeAll()
    withheld.removeAll()
  }

  private mutating func retract(_ priors: [Bracket.Prior]) {
    for prior in priors { notifications.retract(prior.observer, at: prior.position) }
  }

  /// Returns the observations that a bracket notifies whose key reaches these, regardless of the values of computed
  /// keys.
  private mutating func bracketTriggers(_ reached: [Reached]) -> [ObserverIndex.TrackedID: Trigger] {
    var triggers: [ObserverIndex.TrackedID: Trigger] = [:]
    for entry in openToBracket(reached) {
      triggers.merge(Trigger(keyPosition: 0, depth: entry.gates.count), for: entry.id)
    }
    return triggers
  }

  /// Returns the observations that a bracket notifies, without those behind computed keys that notify only when changed
  /// and have the same value as `before`.
  private mutating func bracketTriggers(
    _ reached: [Reached], before: inout GatesAtWillChange
  ) -> [ObserverIndex.TrackedID: Trigger] {
    var triggers: [ObserverIndex.TrackedID: Trigger] = [:]
    for entry in openToBracket(reached) {
      guard owes(entry.id) || passes(entry.gates, before: &before, for: entry.id) else { continue }
      triggers.merge(Trigger(keyPosition: 0, depth: entry.gates.count), for: entry.id)
    }
    return triggers
  }

  /// Returns the reached observations that a bracket's end may notify. Guarded observers are notified of each operation
  /// instead.
  private mutating func openToBracket(_ reached: [Reached]) -> [Reached] {
    let guarded = findGuarded(reached).guarded
    return reached.filter { isOpenToChanges($0.gates) && !$0.isOfRule && !guarded.contains($0.id) }
  }
}

// MARK: - Computed keys that keep silent

extension CommitNotifier {
  private func isOpenToChanges(_ gates: [ObservedKey]) -> Bool {
    gates.allSatisfy { brackets[$0] == nil && state.notifying($0) != .manual }
  }

  /// Returns the values of those computed keys on the ways to observations that notify only when changed.
  private mutating func gateValues(
    of gated: [(id: ObserverIndex.TrackedID, trigger: Trigger, gates: [ObservedKey])]
  ) -> [ObservedKey: Value] {
    var values: [ObservedKey: Value] = [:]
    for entry in gated {
      for gate in entry.gates where values[gate] == nil && state.notifying(gate) == .changed {
        values[gate] = gateValue(of: gate, for: entry.id)
      }
    }
    return values
  }

  /// Returns true if each computed key on the way to an observation notifies: those that do so only when changed must
  /// have another value than in `valuesBefore`. False if the observer misses the commit.
  private mutating func passes(
    _ gates: [ObservedKey], valuesBefore: [ObservedKey: Value], for id: ObserverIndex.TrackedID
  ) -> Bool {
    for gate in gates {
      guard let before = valuesBefore[gate] else { continue }
      guard let after = gateValue(of: gate, for: id), !before.isWrittenAlike(after) else { return false }
    }
    return true
  }

  /// Returns true if each computed key on the way notifies, compared with the state at a bracket's beginning.
  private mutating func passes(
    _ gates: [ObservedKey], before: inout GatesAtWillChange, for id: ObserverIndex.TrackedID
  ) -> Bool {
    for gate in gates where state.notifying(gate) == .changed && before.values[gate] == nil {
      before.values[gate] = gateValue(of: gate, for: id, in: before.state)
    }
    return passes(gates, valuesBefore: before.values, for: id)
  }
}

// MARK: - Silence

/// Keys that are set silently while a bracket is open: this is not a reason to notify, but the old value of the
/// notification at the bracket's end is the one before the setting.
extension CommitNotifier {
  /// Stores the values that observers saw last and that depend on the key of an open bracket, and the present value of
  /// `key`, which is about to be set silently. Must be called before the change is applied.
  private mutating func noteSilence(_ reached: [Reached], of key: ObservedKey) {
    guard let record = state.record(key.object), let storage = record.entity.keys[key.key].storage else { return }
    for entry in reached {
      if withheld[entry.id] == nil {
        guard dependsOnBracket(entry.id) else { continue }
        withheld[entry.id] = observedValue(of: entry.id).map { Withheld(value: $0) }
      }
      if withheld[entry.id]?.silenced[key] == nil { withheld[entry.id]?.silenced[key] = record.values[storage] }
    }
  }

  /// Returns true if an observation depends on the key of an open bracket.
  private mutating func dependsOnBracket(_ id: ObserverIndex.TrackedID) -> Bool {
    for dependency in index.tracked[id]?.dependencies ?? [] {
      let key = dependency.observedKey
      if brackets[key] != nil || (key.isCollection && brackets.holder(ofWatch: key, index.collections) != nil) {
        return true
      }
    }
    return false
  }

  /// Returns true if the value that an observer saw last differs from the present one because a bracket withheld
  /// changes: then a key that notifies only when changed must not suppress the notification. Silent settings do not
  /// count.
  private mutating func owes(_ id: ObserverIndex.TrackedID) -> Bool {
    guard let withheld = withheld[id], withheld.isHeard, let present = observedValue(of: id),
      withheld.value != present
    else { return false }
    guard !withheld.silenced.isEmpty else { return true }
    return audibleValue(of: id, silenced: withheld.silenced).map { withheld.value != $0 } ?? false
  }
}

// MARK: - Guarding

/// Observations of viewers who may not read everything (the specification, section 11).
extension CommitNotifier {
  /// Divides the observations that a key reaches and whose viewers may not read everything. The values of the `guarded`
  /// ones have to be compared: the key only decides what may be read, part of the path may not be read, or the way
  /// leads through a collection. The `plain` others are notified like any observation.
  private mutating func findGuarded(
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

  /// Returns the old values of guarded observations, as their viewers see them.
  private mutating func guardedValues(of ids: Set<ObserverIndex.TrackedID>) -> [ObserverIndex.TrackedID: Value] {
    var values: [ObserverIndex.TrackedID: Value] = [:]
    workOut(ids, isBefore: true)
    for id in ids { values[id] = observedValue(of: id, isBefore: true) }
    return values
  }

  /// Notifies the guarded observations whose value differs from the one that was last notified.
  private mutating func notifyGuarded(
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
  private mutating func endUnreadableObservations(_ gone: inout [ObserverID: Set<ObserverEvent.Gone>]) {
    for id in guarding?.touched ?? [] {
      guard let guarding, let entry = index.tracked[id], let viewer = entry.observation.viewer,
        !guarding.sight(of: entry.observation.object, for: viewer).after
      else { continue }
      gone[entry.observer, default: []].insert(.init(of: entry.observation, in: entry.cell))
      index.end(id)
    }
  }
}

// MARK: - Evaluating

/// Evaluation: an observer whose clients have used up their share of the steps misses the commit.
extension CommitNotifier {
  /// Returns the value of an observation between the operations, as the old or as the new value. Nil if its observer
  /// misses the commit.
  private mutating func observedValue(of id: ObserverIndex.TrackedID, isBefore: Bool = false) -> Value? {
    guard let entry = index.tracked[id] else { return nil }
    let observation = entry.observation
    if let key = entry.registration.attribute { return state.value(of: observation.object, key: key) }
    let evaluation = StateValues.Evaluation.observed(
      entry.registration.valueNumber, isBefore: isBefore && observation.viewer != nil)
    if let known = values[evaluation] { return known }
    // Results remembered during a guarded reading are valid for one viewer only.
    guard
      let value = evaluate(
        for: id, isApart: observation.viewer != nil,
        { reader in
          observation.value(in: reader, within: reader.guarding, isBefore: isBefore)
        })
    else { return nil }
    values.keep(value, for: evaluation)
    return value
  }

  /// Returns the value that an observation would have if silently set keys still had their previous values.
  private mutating func audibleValue(of id: ObserverIndex.TrackedID, silenced: [ObservedKey: Value]) -> Value? {
    guard let observation = index.tracked[id]?.observation else { return nil }
    return evaluate(for: id, isApart: true) { reader in
      observation.value(
        in: AudibleState(base: reader, silenced: silenced), within: reader.guarding, isBefore: false)
    }
  }

  /// Returns the value of a computed key on the way to an observation.
  private mutating func gateValue(of gate: ObservedKey, for id: ObserverIndex.TrackedID) -> Value? {
    if let known = values[.gate(gate)] { return known }
    guard let value = evaluate(for: id, isApart: false, { $0.value(of: gate.object, key: gate.key) }) else {
      return nil
    }
    values.keep(value, for: .gate(gate))
    return value
  }

  /// Returns the value of a computed key on the way to an observation, in an earlier state.
  private mutating func gateValue(
    of gate: ObservedKey, for id: ObserverIndex.TrackedID, in former: StateAtWillChange
  ) -> Value? {
    evaluate(for: id, isApart: true) { _ in former.value(of: gate.object, key: gate.key) }
  }

  /// Evaluates a value for the observer of an observation; nil if that takes more steps than its clients have left.
  /// With `isApart`, the value is read from another state, or for another viewer, than those of other evaluations.
  private mutating func evaluate(
    for id: ObserverIndex.TrackedID, isApart: Bool, _ read: (Self) -> Value
  ) -> Value? {
    guard let observer = index.tracked[id]?.observer, !notifications.overflowed.contains(observer) else { return nil }
    let payers = payers(of: observer)
    var value: Value?
    if values.grant(to: payers) {
      if isApart { work?.forget() }
      value = read(self)
      if isApart { work?.forget() }
      if !values.finish(for: payers) { value = nil }
    }
    if value == nil { notifications.miss(observer) }
    return value
  }

  /// Returns the clients that pay for an observer; none if there is no budget.
  private func payers(of observer: ObserverID) -> [QueryPayer] {
    values.budget.isUnlimited ? [] : index.payers[observer]
  }

  /// Evaluates observations. Once the budget is short, clients take turns: next is always an observation of a client
  /// that has used least.
  private mutating func workOut(_ ids: some Collection<ObserverIndex.TrackedID>, isBefore: Bool = false) {
    guard !values.budget.isUnlimited, ids.count > 1 else { return }
    var rest = Array(ids)[...]
    for id in rest {
      if let observer = index.tracked[id]?.observer { values.note(index.payers[observer]) }
    }
    while values.budget.isPlentiful, let id = rest.popFirst() { _ = observedValue(of: id, isBefore: isBefore) }
    guard !rest.isEmpty else { return }
    let payers = rest.map { id in index.tracked[id].map { index.payers[$0.observer] } ?? [.unknown] }
    let waiting = Array(rest)
    var turns = QueryTurns(waiting.indices, budget: values.budget.limit, spent: values.budget.spent) { payers[$0] }
    while let number = turns.next() {
      let spent = values.budget.spentSteps
      _ = observedValue(of: waiting[number], isBefore: isBefore)
      turns.spend(values.budget.spentSteps - spent, by: payers[number])
    }
  }
}

// MARK: - Budget

/// Observers for which one commit exceeds the limits or the budget.
extension CommitNotifier {
  /// Adds a change for an observer, for which there is room. If the budget does not suffice for it, the observer misses
  /// the commit.
  private mutating func append(_ change: Change, of id: ObserverIndex.TrackedID, for observer: ObserverID) {
    guard values.takeChange(of: payers(of: observer)) else { return notifications.miss(observer) }
    notifications.append(change, of: id, for: observer)
  }

  /// Returns the observations that depend on a key and whose observers have not overflowed.
  ///
  /// Observations of an overflowed observer are detached from the index when they are found, so that none is found
  /// twice. They are not needed before the end of the commit.
  private mutating func listeners(to key: ObservedKey) -> SmallSet<ObserverIndex.Listener> {
    var listeners = index.listeners(dependingOn: key)
    let overflowed = notifications.overflowed
    guard !overflowed.isEmpty else { return listeners }
    let deaf = listeners.filter { overflowed.contains($0.registration.observer) }
    for listener in deaf {
      index.unwire(listener.id)
      if notifications.missesRest(listener.registration.observer) {
        missing.append(listener.id)
      } else {
        unwired.append(listener.id)
      }
      listeners.remove(listener)
    }
    return listeners
  }

  /// Attaches the observations of observers again that have overflowed in this commit only.
  private mutating func endOverflow(_ gone: inout [ObserverID: Set<ObserverEvent.Gone>]) {
    gone.merge(index.rewire(unwired, in: state)) { $0.union($1) }
    unwired = []
  }

  /// Attaches the observations of observers again that missed some of the commits. Must be called after the last
  /// commit. Returns the events of the observations that end by that.
  private mutating func endMissing(at last: Commit) -> [ObserverEvent] {
    guard !missing.isEmpty else { return [] }
    let gone = index.rewire(missing, in: state)
    missing = []
    index.sweep()
    return gone.sorted { $0.key.rawValue < $1.key.rawValue }.map { observer, ended in
      ObserverEvent(
        observer: observer, revision: last.revision, writer: last.writer, changes: [],
        gone: ObserverEvent.Gone.inOrder(ended))
    }
  }
}

extension CommitNotifier: ObjectReader {
  /// Returns the object in the state between the operations done and those to be done.
  func record(_ reference: Reference) -> ObjectRecord? { values.meter.spend() ? state.record(reference) : nil }

  /// The work that counts the steps of evaluations.
  var work: ReadingWork? { values.meter }

  /// Returns the fold of a watched collection; nil if it is not maintained.
  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? {
    index.collections.folds.folded(fold, of: owner)
  }
}

/// The values of computed keys as they were when a bracket was opened, each evaluated once.
private struct GatesAtWillChange {
  let state: StateAtWillChange
  var values: [ObservedKey: Value] = [:]
}

extension Commit.CollectionChange {
  /// The inserted and removed members: mostly one of the two lists, which is then shared.
  fileprivate var touched: [Value] {
    if removed.isEmpty { return inserted }
    return inserted.isEmpty ? removed : removed + inserted
  }
}

extension Change.Kind {
  /// Creates the kind of a collection's change.
  fileprivate init(_ kind: Commit.CollectionChange.Kind) {
    switch kind {
    case .insertion: self = .insertion
    case .removal: self = .removal
    case .replacement: self = .replacement
    }
  }
}
