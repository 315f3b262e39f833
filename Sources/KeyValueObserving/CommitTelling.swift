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

  /// A bracket that is open: what its observers saw at the outermost `willChange`.
  struct Bracket {
    var depth: Int
    let keyValue: Value
    var olds: [ObserverIndex.TrackedID: Value]
    /// What computed keys that notify only when changed had, between its observers and the key.
    let gateValues: [ObservedKey: Value]
    /// Where the priors stand among the observer's notifications, for a bracket that turns out to be silent.
    var priors: [Prior]

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
  private var notifications: [ObserverID: [Notification]] = [:]
  private var brackets: [ObservedKey: Bracket] = [:]

  init(index: consuming ObserverIndex, state: consuming PastState) {
    self.index = index
    self.state = state
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
    defer { notifications.removeAll() }
    return Set(notifications.keys).union(gone.keys).compactMap { observer in
      let changes = (notifications[observer] ?? []).lazy.filter { !$0.isRetracted }.map(\.change)
      let ended = gone[observer] ?? []
      let isGone = Set(ended)
      let event = ObserverEvent(
        observer: observer, revision: commit.revision, writer: commit.writer,
        changes: changes.filter { !isGone.contains(.init(cell: $0.cell, object: $0.observation.object)) },
        gone: ended)
      return event.changes.isEmpty && event.gone.isEmpty ? nil : event
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
    var gated: [(id: ObserverIndex.TrackedID, trigger: Trigger, gates: [ObservedKey])] = []
    for (position, change) in changes.enumerated() {
      let key = ObservedKey(object: change.object, key: change.key)
      let ids = index.ids(dependingOn: key)
      touched.formUnion(ids)
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
    guard !touched.isEmpty else { return state.apply(step) }
    let gateValues = values(ofGates: gated.flatMap(\.gates))
    let candidates = Set(triggers.keys).union(gated.map(\.id))
    let olds = values(of: candidates)
    state.apply(step)
    for entry in gated where passes(entry.gates, valuesBefore: gateValues) {
      triggers.merge(entry.trigger, for: entry.id)
    }
    for id in touched { index.rewire(id, in: state) }
    notify(triggers, olds: olds)
  }

  private func values(of ids: Set<ObserverIndex.TrackedID>) -> [ObserverIndex.TrackedID: Value] {
    var values: [ObserverIndex.TrackedID: Value] = [:]
    for id in ids { values[id] = index.tracked[id]?.observation.value(in: state) }
    return values
  }

  /// Appends priors and changes of one operation to each observer's notifications: the priors in order, the changes as
  /// their mirror image.
  private mutating func notify(
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
  private func sorted(
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

  private mutating func appendPrior(_ id: ObserverIndex.TrackedID, old: Value?) {
    guard let entry = index.tracked[id], entry.observation.options.contains(.prior) else { return }
    let change = Change(
      cell: entry.cell, observation: entry.observation, old: entry.observation.options.contains(.old) ? old : nil,
      new: nil, isPrior: true)
    notifications[entry.observer, default: []].append(Notification(id: id, change: change))
  }

  private mutating func appendChange(_ id: ObserverIndex.TrackedID, old: Value?, to observer: ObserverID) {
    guard let entry = index.tracked[id] else { return }
    let options = entry.observation.options
    let needsValue = options.contains(.new) || !brackets.isEmpty
    let new = needsValue ? entry.observation.value(in: state) : nil
    // What it saw last is what an enclosing bracket will call old.
    for key in brackets.keys { brackets[key]?.olds[id] = new }
    let change = Change(
      cell: entry.cell, observation: entry.observation, old: options.contains(.old) ? old : nil,
      new: options.contains(.new) ? new : nil, isPrior: false)
    notifications[observer, default: []].append(Notification(id: id, change: change))
  }

  // MARK: Computed keys that keep silent

  private func notifying(_ key: ObservedKey) -> Key.Notifying {
    state.record(key.object)?.entity.keys[key.key].notifying ?? .always
  }

  private func isOpenToChanges(_ gates: [ObservedKey]) -> Bool {
    gates.allSatisfy { brackets[$0] == nil && notifying($0) != .manual }
  }

  private func values(ofGates gates: [ObservedKey]) -> [ObservedKey: Value] {
    var values: [ObservedKey: Value] = [:]
    for gate in gates where values[gate] == nil && notifying(gate) == .changed {
      values[gate] = state.value(of: gate.object, at: CollectionOfOne(gate.key))
    }
    return values
  }

  private func passes(_ gates: [ObservedKey], valuesBefore: [ObservedKey: Value]) -> Bool {
    gates.allSatisfy { gate in
      guard let before = valuesBefore[gate] else { return true }
      return before != state.value(of: gate.object, at: CollectionOfOne(gate.key))
    }
  }

  // MARK: Brackets

  private mutating func open(_ key: ObservedKey) {
    if brackets[key] != nil {
      brackets[key]?.depth += 1
      return
    }
    let triggers = bracketTriggers(key, gateValues: [:])
    let gates = index.ids(dependingOn: key).flatMap { index.tracked[$0]?.dependencies.flatMap(\.gates) ?? [] }
    var bracket = Bracket(
      depth: 1, keyValue: state.value(of: key.object, at: CollectionOfOne(key.key)),
      olds: values(of: Set(triggers.keys)), gateValues: values(ofGates: gates), priors: [])
    for id in sorted(Array(triggers.keys), triggers) {
      guard let entry = index.tracked[id], entry.observation.options.contains(.prior) else { continue }
      bracket.priors.append(
        .init(id: id, observer: entry.observer, position: notifications[entry.observer]?.count ?? 0))
      appendPrior(id, old: bracket.olds[id])
    }
    brackets[key] = bracket
  }

  private mutating func close(_ key: ObservedKey) {
    guard var bracket = brackets[key] else { return }
    bracket.depth -= 1
    guard bracket.depth == 0 else {
      brackets[key] = bracket
      return
    }
    brackets[key] = nil
    let isUnchanged = bracket.keyValue == state.value(of: key.object, at: CollectionOfOne(key.key))
    if notifying(key) == .changed, isUnchanged {
      return retract(bracket.priors)
    }
    let triggers = bracketTriggers(key, gateValues: bracket.gateValues)
    retract(bracket.priors.filter { triggers[$0.id] == nil })
    var olds = bracket.olds
    // One that came to depend on the key inside the bracket was told its value then.
    for id in triggers.keys where olds[id] == nil { olds[id] = index.tracked[id]?.observation.value(in: state) }
    notify(triggers, olds: olds, withPriors: false)
  }

  private mutating func retract(_ priors: [Bracket.Prior]) {
    for prior in priors { notifications[prior.observer]?[prior.position].isRetracted = true }
  }

  private func bracketTriggers(
    _ key: ObservedKey, gateValues: [ObservedKey: Value]
  ) -> [ObserverIndex.TrackedID: Trigger] {
    var triggers: [ObserverIndex.TrackedID: Trigger] = [:]
    for id in index.ids(dependingOn: key) {
      for dependency in index.tracked[id]?.dependencies ?? []
      where dependency.observedKey == key && isOpenToChanges(dependency.gates)
        && passes(dependency.gates, valuesBefore: gateValues)
      {
        triggers.merge(Trigger(keyPosition: 0, depth: dependency.depth), for: id)
      }
    }
    return triggers
  }
}

extension [ObserverIndex.TrackedID: CommitTelling.Trigger] {
  /// Keeps the first reason that an observation has to hear of an operation.
  fileprivate mutating func merge(_ trigger: CommitTelling.Trigger, for id: ObserverIndex.TrackedID) {
    guard let present = self[id] else {
      self[id] = trigger
      return
    }
    if (trigger.keyPosition, trigger.depth) < (present.keyPosition, present.depth) { self[id] = trigger }
  }
}
