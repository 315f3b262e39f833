import KeyValueModel

/// Brackets: what is told at the outermost `didChange`, and what is taken back.
extension CommitNotifier {
  mutating func open(_ key: ObservedKey) {
    if brackets[key] != nil {
      brackets[key]?.depth += 1
      return
    }
    let reached = reach(key)
    let triggers = bracketTriggers(reached, before: nil)
    let olds = oldValues(of: triggers.keys)
    var bracket = Bracket(number: openedBrackets, logStart: log.count, dependents: Set(reached.map(\.id)))
    openedBrackets += 1
    holdersOfWatches = nil
    for id in triggers.sorted(Array(triggers.keys), in: index) {
      guard let entry = index.tracked[id], entry.observation.options.contains(.prior) else { continue }
      bracket.priors.append(
        .init(id: id, observer: entry.observer, position: notifications[entry.observer]?.count ?? 0))
      appendPrior(id, old: olds[id])
    }
    brackets[key] = bracket
  }

  mutating func close(_ key: ObservedKey) {
    guard var bracket = brackets[key] else { return }
    bracket.depth -= 1
    guard bracket.depth == 0 else {
      brackets[key] = bracket
      return
    }
    brackets[key] = nil
    holdersOfWatches = nil
    defer { if brackets.isEmpty { log.removeAll() } }
    let before = StateAtWillChange(log: log, start: bracket.logStart, state: state)
    let reached = reach(key)
    // What only came to depend on the key inside the bracket was notified by what made it so.
    var triggers = bracketTriggers(reached, before: before).filter {
      bracket.dependents.contains($0.key) || withheld[$0.key]?.isHeard == true
    }
    if notifying(key) == .changed,
      before.value(of: key.object, key: key.key).isWrittenAlike(value(of: key.object, key: key.key))
    {
      // Silent, except for observers that look through the key at something else that changed while it led elsewhere.
      triggers = triggers.filter { owes($0.key) }
    }
    release(bracket.held, heldBy: key, before: before, into: &triggers)
    retract(bracket.priors.filter { triggers[$0.id] == nil })
    notify(triggers, olds: oldValues(of: triggers.keys), announced: Set(bracket.priors.map(\.id)))
  }

  /// Holds back a change from the observations that it reaches through a computed key of which another input is inside
  /// a bracket. Must come before the change is applied.
  mutating func hold(_ reached: [Reached]) {
    for entry in reached {
      guard let holder = entry.holder, isOpenToChanges(entry.gates) else { continue }
      let way = HeldWay(bracket: holder, gates: entry.gates)
      if withheld[entry.id] == nil { withheld[entry.id] = value(of: entry.id).map { Withheld(value: $0) } }
      withheld[entry.id]?.ways.insert(way)
      withheld[entry.id]?.isHeard = true
      brackets[holder]?.held.insert(entry.id)
    }
  }

  /// Adds what a bracket held back of changes by other keys, where the observer was not notified in between.
  private mutating func release(
    _ held: Set<ObserverIndex.TrackedID>, heldBy key: ObservedKey, before: StateAtWillChange,
    into triggers: inout [ObserverIndex.TrackedID: Trigger]
  ) {
    for id in held {
      var nearest: Int?
      for way in withheld[id]?.ways ?? [] where way.bracket == key {
        withheld[id]?.ways.remove(way)
        guard isOpenToChanges(way.gates) else { continue }
        guard owes(id) || passes(way.gates, valuesBefore: values(ofGates: way.gates, in: before)) else { continue }
        nearest = min(nearest ?? .max, way.gates.count)
      }
      if let nearest, triggers[id] == nil { triggers[id] = Trigger(keyPosition: 0, depth: nearest) }
    }
  }

  /// Forgets the brackets of a commit, and what they held back.
  mutating func endBrackets() {
    brackets.removeAll()
    openedBrackets = 0
    holdersOfWatches = nil
    log.removeAll()
    withheld.removeAll()
  }

  private mutating func retract(_ priors: [Bracket.Prior]) {
    for prior in priors { notifications[prior.observer]?[prior.position].isRetracted = true }
  }

  /// Who hears of a bracket around a key that reaches these; with the state `before` it, without those behind computed
  /// keys that notify only when changed and are as they were.
  private mutating func bracketTriggers(
    _ reached: [Reached], before: StateAtWillChange?
  ) -> [ObserverIndex.TrackedID: Trigger] {
    var triggers: [ObserverIndex.TrackedID: Trigger] = [:]
    // Those that are looked at were told what they see of each operation.
    let guarded = findGuarded(reached).guarded
    for entry in reached where isOpenToChanges(entry.gates) && !entry.isOfRule && !guarded.contains(entry.id) {
      let gateValues = before.map { values(ofGates: entry.gates, in: $0) } ?? [:]
      guard owes(entry.id) || passes(entry.gates, valuesBefore: gateValues) else { continue }
      triggers.merge(Trigger(keyPosition: 0, depth: entry.gates.count), for: entry.id)
    }
    return triggers
  }
}

// MARK: - Computed keys that keep silent

extension CommitNotifier {
  func notifying(_ key: ObservedKey) -> Key.Notifying {
    // An object that is not there, because it is about to be made again, keeps silent like any of its kind.
    let entity = state.record(key.object)?.entity ?? state.schema.entity(of: key.object)
    return entity?.notifying(key.key) ?? .always
  }

  func isOpenToChanges(_ gates: [ObservedKey]) -> Bool {
    gates.allSatisfy { brackets[$0] == nil && notifying($0) != .manual }
  }

  func values(ofGates gates: [ObservedKey], in reader: some ObjectReader) -> [ObservedKey: Value] {
    var values: [ObservedKey: Value] = [:]
    for gate in gates where values[gate] == nil && notifying(gate) == .changed {
      values[gate] = reader.value(of: gate.object, key: gate.key)
    }
    return values
  }

  func passes(_ gates: [ObservedKey], valuesBefore: [ObservedKey: Value]) -> Bool {
    gates.allSatisfy { gate in
      guard let before = valuesBefore[gate] else { return true }
      return !before.isWrittenAlike(value(of: gate.object, key: gate.key))
    }
  }
}
