internal import KeyValueModel

/// Works out what one commit tells each observer, operation by operation, walking from the state before to the state
/// after. Knows nothing but these states and the index.
struct CommitTelling {
  /// A notification, with what it takes to put it in its place and to take it back.
  struct Notification {
    let id: ObserverIndex.TrackedID
    let change: Change
    var isRetracted = false
  }

  /// A bracket that is open.
  struct Bracket {
    var depth = 1
    /// Where the undo log ended at the outermost `willChange`.
    let logStart: Int
    /// Where the priors stand among the observer's notifications, for a bracket that turns out to be silent.
    var priors: [Prior] = []

    struct Prior {
      let id: ObserverIndex.TrackedID
      let observer: ObserverID
      let position: Int
    }
  }

  /// Why an observation hears of an operation: the place of the first key, and how far it is from the observation.
  struct Trigger {
    var keyPosition: Int
    var depth: Int
  }

  var index: ObserverIndex
  var state: PastState
  var notifications: [ObserverID: [Notification]] = [:]
  /// The most notifications of one commit that are collected for one observer.
  let changesPerObserver: Int
  /// Who has been told more than that in this commit.
  var overflown: Set<ObserverID> = []
  /// What the overflown observe of what this commit has touched: not in the index for the rest of it.
  var unwired: [ObserverIndex.TrackedID] = []
  var brackets: [ObservedKey: Bracket] = [:]
  /// What was written since the first of the open brackets.
  var log = UndoLog()
  /// What observers saw last of the values that changed inside a bracket and that they have not been told of yet.
  var withheld: [ObserverIndex.TrackedID: Value] = [:]

  init(index: consuming ObserverIndex, state: consuming PastState, changesPerObserver: Int) {
    self.index = index
    self.state = state
    self.changesPerObserver = changesPerObserver
  }

  /// What the commit tells, by observer; those that hear nothing are not there.
  mutating func events(of commit: Commit) -> [ObserverEvent] {
    for step in commit.steps {
      switch step.kind {
      case .change(let changes): tell(step, changes)
      case .willChange(let object, let key): open(ObservedKey(object: object, key: key))
      case .didChange(let object, let key): close(ObservedKey(object: object, key: key))
      }
    }
    let gone = endGoneObservations(commit)
    brackets.removeAll()
    log.removeAll()
    withheld.removeAll()
    defer {
      notifications.removeAll()
      endOverflow()
    }
    return Set(notifications.keys).union(gone.keys).union(overflown).compactMap { observer in
      let changes = (notifications[observer] ?? []).lazy.filter { !$0.isRetracted }.map(\.change)
      let ended = gone[observer] ?? []
      let isGone = Set(ended)
      let event = ObserverEvent(
        observer: observer, revision: commit.revision, writer: commit.writer,
        changes: changes.filter { !isGone.contains(.init(cell: $0.cell, object: $0.observation.object)) },
        gone: ended, isOverflown: overflown.contains(observer))
      return event.changes.isEmpty && event.gone.isEmpty && !event.isOverflown ? nil : event
    }
  }

  /// Ends what was registered with objects that the commit deleted, and says for whom.
  private mutating func endGoneObservations(_ commit: Commit) -> [ObserverID: [ObserverEvent.Gone]] {
    var gone: [ObserverID: Set<ObserverEvent.Gone>] = [:]
    for (object, record) in commit.before where record != nil && state.record(object) == nil {
      for id in index.ids(of: object) {
        guard let entry = index.tracked[id] else { continue }
        gone[entry.observer, default: []].insert(.init(cell: entry.cell, object: object))
        index.end(id)
      }
    }
    return gone.mapValues { $0.sorted { ($0.cell ?? "", $0.object) < ($1.cell ?? "", $1.object) } }
  }

  // MARK: One operation

  private mutating func tell(_ step: Commit.Step, _ changes: [Commit.KeyChange]) {
    var triggers: [ObserverIndex.TrackedID: Trigger] = [:]
    var touched: Set<ObserverIndex.TrackedID> = []
    var redirected: Set<ObserverIndex.TrackedID> = []
    // Objects that come or go change what every path through them depends on.
    let reshapes = step.writes.contains { $0.after == nil || state.record($0.object) == nil }
    var gated: [(id: ObserverIndex.TrackedID, trigger: Trigger, gates: [ObservedKey])] = []
    for (position, change) in changes.enumerated() {
      let key = ObservedKey(object: change.object, key: change.key)
      let ids = listeners(to: key)
      touched.formUnion(ids)
      if reshapes || isLink(key) { redirected.formUnion(ids) }
      withhold(ids, key)
      guard !change.isSilent, brackets[key] == nil else { continue }
      for id in ids {
        for dependency in index.tracked[id]?.dependencies ?? [] where dependency.observedKey == key {
          let trigger = Trigger(keyPosition: position, depth: dependency.depth)
          if dependency.gates.isEmpty {
            triggers.merge(trigger, for: id)
          } else if isOpenToChanges(dependency.gates) {
            gated.append((id, trigger, dependency.gates))
          }
        }
      }
    }
    guard !touched.isEmpty else { return apply(step) }
    let gateValues = values(ofGates: gated.flatMap(\.gates), in: state)
    let candidates = Set(triggers.keys).union(gated.map(\.id))
    let olds = values(of: candidates)
    apply(step)
    for entry in gated where owes(entry.id) || passes(entry.gates, valuesBefore: gateValues) {
      triggers.merge(entry.trigger, for: entry.id)
    }
    for id in redirected { index.rewire(id, in: state) }
    notify(triggers, olds: olds)
  }

  /// Whether setting the key can make a path lead elsewhere.
  private func isLink(_ key: ObservedKey) -> Bool {
    guard let entity = state.record(key.object)?.entity, case .attribute = entity.keys[key.key].kind else {
      return true
    }
    return false
  }

  /// Goes on to the state after an operation; what was there before is kept for open brackets.
  private mutating func apply(_ step: Commit.Step) {
    if !brackets.isEmpty {
      for (object, _) in step.writes { log.append(object, state.record(object)) }
    }
    state.apply(step)
  }

  /// Remembers what those see who depend on a key that is about to be set inside a bracket, its own or one of a computed
  /// key before it: the next that they are told has this as its old value.
  private mutating func withhold(_ ids: Set<ObserverIndex.TrackedID>, _ key: ObservedKey) {
    guard !brackets.isEmpty else { return }
    for id in ids where withheld[id] == nil {
      guard let entry = index.tracked[id] else { continue }
      let isWithheld = entry.dependencies.contains { dependency in
        dependency.observedKey == key
          && (brackets[key] != nil || dependency.gates.contains { brackets[$0] != nil })
      }
      if isWithheld { withheld[id] = entry.observation.value(in: state) }
    }
  }

  /// What the observers saw last.
  func values(of ids: Set<ObserverIndex.TrackedID>) -> [ObserverIndex.TrackedID: Value] {
    var values: [ObserverIndex.TrackedID: Value] = [:]
    for id in ids { values[id] = withheld[id] ?? index.tracked[id]?.observation.value(in: state) }
    return values
  }

  /// Appends priors and changes of one operation to each observer's notifications: the priors in order, the changes as
  /// their mirror image.
  mutating func notify(
    _ triggers: [ObserverIndex.TrackedID: Trigger], olds: [ObserverIndex.TrackedID: Value], withPriors: Bool = true
  ) {
    var byObserver: [ObserverID: [ObserverIndex.TrackedID]] = [:]
    for id in triggers.keys {
      guard let entry = index.tracked[id] else { continue }
      byObserver[entry.observer, default: []].append(id)
    }
    for (observer, ids) in byObserver {
      let ordered = sorted(ids, triggers)
      if withPriors { for id in ordered { appendPrior(id, old: olds[id]) } }
      for id in ordered.reversed() { appendChange(id, old: olds[id], to: observer) }
    }
  }

  /// By key, nearness, cell and place: nothing that depends on when somebody registered, except among observations
  /// that are identical.
  func sorted(
    _ ids: [ObserverIndex.TrackedID], _ triggers: [ObserverIndex.TrackedID: Trigger]
  ) -> [ObserverIndex.TrackedID] {
    guard ids.count > 1 else { return ids }
    return
      ids
      .compactMap { id in index.tracked[id].map { (id, $0, triggers[id] ?? Trigger(keyPosition: 0, depth: 0)) } }
      .sorted { left, right in
        let leftRank = (left.2.keyPosition, left.2.depth, left.1.cell ?? "", left.1.position, left.0)
        let rightRank = (right.2.keyPosition, right.2.depth, right.1.cell ?? "", right.1.position, right.0)
        return leftRank < rightRank
      }
      .map(\.0)
  }

  mutating func appendPrior(_ id: ObserverIndex.TrackedID, old: Value?) {
    guard let entry = index.tracked[id], entry.observation.options.contains(.prior), hasRoom(for: entry.observer)
    else { return }
    let change = Change(
      cell: entry.cell, observation: entry.observation, old: entry.observation.options.contains(.old) ? old : nil,
      new: nil, isPrior: true)
    notifications[entry.observer, default: []].append(Notification(id: id, change: change))
  }

  private mutating func appendChange(_ id: ObserverIndex.TrackedID, old: Value?, to observer: ObserverID) {
    guard let entry = index.tracked[id], hasRoom(for: observer) else { return }
    let options = entry.observation.options
    withheld[id] = nil
    let change = Change(
      cell: entry.cell, observation: entry.observation, old: options.contains(.old) ? old : nil,
      new: options.contains(.new) ? entry.observation.value(in: state) : nil, isPrior: false)
    notifications[observer, default: []].append(Notification(id: id, change: change))
  }
}

extension [ObserverIndex.TrackedID: CommitTelling.Trigger] {
  /// Keeps the first reason that an observation has to hear of an operation.
  mutating func merge(_ trigger: CommitTelling.Trigger, for id: ObserverIndex.TrackedID) {
    guard let present = self[id] else {
      self[id] = trigger
      return
    }
    if (trigger.keyPosition, trigger.depth) < (present.keyPosition, present.depth) { self[id] = trigger }
  }
}
