import KeyValueModel

/// Brackets: what is told at the outermost `didChange`, and what is taken back.
extension CommitNotifier {
  mutating func open(_ key: ObservedKey) {
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

  mutating func close(_ key: ObservedKey) {
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
    // What only came to depend on the key inside the bracket was notified by what made it so.
    var triggers = bracketTriggers(reached, before: &before).filter {
      bracket.dependents.contains($0.key) || withheld[$0.key]?.isHeard == true
    }
    if state.notifying(key) == .changed, hasSameValue(key, as: start) {
      // Silent, except for observers that look through the key at something else that changed while it led elsewhere.
      triggers = triggers.filter { owes($0.key) }
    }
    release(bracket.held, heldBy: key, before: &before, into: &triggers)
    retract(bracket.priors.filter { triggers[$0.id] == nil })
    notify(triggers, olds: oldValues(of: triggers.keys), announced: Set(bracket.priors.map(\.id)))
  }

  /// True if a key has the value that it had in an earlier state.
  private func hasSameValue(_ key: ObservedKey, as former: StateAtWillChange) -> Bool {
    // What is remembered is of one state.
    work?.forget()
    let before = former.value(of: key.object, key: key.key)
    work?.forget()
    return before.isWrittenAlike(value(of: key.object, key: key.key))
  }

  /// Holds back a change from the observations that it reaches through a computed key of which another input is inside
  /// a bracket. Must come before the change is applied.
  mutating func hold(_ reached: [Reached]) {
    for entry in reached {
      guard let holder = entry.holder, isOpenToChanges(entry.gates) else { continue }
      let way = HeldWay(bracket: holder, gates: entry.gates)
      if withheld[entry.id] == nil { withheld[entry.id] = observedValue(of: entry.id).map { Withheld(value: $0) } }
      withheld[entry.id]?.ways.insert(way)
      withheld[entry.id]?.isHeard = true
      brackets[holder]?.held.insert(entry.id)
    }
  }

  /// Adds what a bracket held back of changes by other keys, where the observer was not notified in between.
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

  /// Forgets the brackets of a commit, and what they held back.
  mutating func endBrackets() {
    brackets = OpenBrackets()
    log.removeAll()
    withheld.removeAll()
  }

  private mutating func retract(_ priors: [Bracket.Prior]) {
    for prior in priors { notifications.retract(prior.observer, at: prior.position) }
  }

  /// The observations that a bracket around a key notifies that reaches these, whatever computed keys come to.
  private mutating func bracketTriggers(_ reached: [Reached]) -> [ObserverIndex.TrackedID: Trigger] {
    var triggers: [ObserverIndex.TrackedID: Trigger] = [:]
    for entry in openToBracket(reached) {
      triggers.merge(Trigger(keyPosition: 0, depth: entry.gates.count), for: entry.id)
    }
    return triggers
  }

  /// The same without those behind computed keys that notify only when changed and are as they were `before`.
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

  /// Those that a bracket's end may notify. Guarded observers are notified of each operation instead.
  private mutating func openToBracket(_ reached: [Reached]) -> [Reached] {
    let guarded = findGuarded(reached).guarded
    return reached.filter { isOpenToChanges($0.gates) && !$0.isOfRule && !guarded.contains($0.id) }
  }
}

// MARK: - Computed keys that keep silent

extension CommitNotifier {
  func isOpenToChanges(_ gates: [ObservedKey]) -> Bool {
    gates.allSatisfy { brackets[$0] == nil && state.notifying($0) != .manual }
  }

  /// The values of the computed keys on the ways to observations that notify only when changed.
  mutating func gateValues(
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

  /// True if each computed key on the way to an observation notifies: where it does so only when changed, because its
  /// value differs from that in `before`. False if the observer misses the commit.
  mutating func passes(
    _ gates: [ObservedKey], valuesBefore: [ObservedKey: Value], for id: ObserverIndex.TrackedID
  ) -> Bool {
    for gate in gates {
      guard let before = valuesBefore[gate] else { continue }
      guard let after = gateValue(of: gate, for: id), !before.isWrittenAlike(after) else { return false }
    }
    return true
  }

  /// The same compared with the state at a bracket's beginning.
  private mutating func passes(
    _ gates: [ObservedKey], before: inout GatesAtWillChange, for id: ObserverIndex.TrackedID
  ) -> Bool {
    for gate in gates where state.notifying(gate) == .changed && before.values[gate] == nil {
      before.values[gate] = gateValue(of: gate, for: id, in: before.state)
    }
    return passes(gates, valuesBefore: before.values, for: id)
  }
}

/// The values of computed keys as they were when a bracket was opened, each worked out once.
private struct GatesAtWillChange {
  let state: StateAtWillChange
  var values: [ObservedKey: Value] = [:]
}
