import KeyValueModel

/// Evaluation: an observer whose clients have used up their share of the steps misses the commit.
extension CommitNotifier {
  /// Returns the value that an observation sees between the operations, as what was or as what is. Nil if its observer
  /// misses the commit.
  mutating func observedValue(of id: ObserverIndex.TrackedID, isBefore: Bool = false) -> Value? {
    guard let entry = index.tracked[id] else { return nil }
    let observation = entry.observation
    if let key = entry.registration.attribute { return state.value(of: observation.object, key: key) }
    let evaluation = StateValues.Evaluation.observed(
      entry.registration.valueNumber, isBefore: isBefore && observation.viewer != nil)
    if let known = values[evaluation] { return known }
    // What is remembered of a guarded reading is that of one viewer.
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

  /// Returns what an observation would see if keys held what they held before they were set silently.
  mutating func audibleValue(of id: ObserverIndex.TrackedID, silenced: [ObservedKey: Value]) -> Value? {
    guard let observation = index.tracked[id]?.observation else { return nil }
    return evaluate(for: id, isApart: true) { reader in
      observation.value(
        in: AudibleState(base: reader, silenced: silenced), within: reader.guarding, isBefore: false)
    }
  }

  /// Returns the value of a computed key on the way to an observation.
  mutating func gateValue(of gate: ObservedKey, for id: ObserverIndex.TrackedID) -> Value? {
    if let known = values[.gate(gate)] { return known }
    guard let value = evaluate(for: id, isApart: false, { $0.value(of: gate.object, key: gate.key) }) else {
      return nil
    }
    values.keep(value, for: .gate(gate))
    return value
  }

  /// The same in an earlier state.
  mutating func gateValue(
    of gate: ObservedKey, for id: ObserverIndex.TrackedID, in former: StateAtWillChange
  ) -> Value? {
    evaluate(for: id, isApart: true) { _ in former.value(of: gate.object, key: gate.key) }
  }

  /// Evaluates something for the observer of an observation; nil if that takes more than its clients have left. What is
  /// read `isApart` from another state than that of the other evaluations.
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

  /// The clients that pay for an observer, where there is a budget.
  func payers(of observer: ObserverID) -> [QueryPayer] { values.budget.isUnlimited ? [] : index.payers[observer] }

  /// Works out what observations see, while the budget is short in turns: always that of a client that has used least.
  mutating func workOut(_ ids: some Collection<ObserverIndex.TrackedID>, isBefore: Bool = false) {
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
