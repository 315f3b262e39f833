/// Deletion by the delete rules.
extension StateEditor {
  /// Deletes an object and what its rules take along; keys of other objects that named them name nothing then.
  mutating func delete(_ reference: Reference) throws(ModelError) {
    _ = try state.requireRecord(reference)
    let doomed = cascade(from: reference)
    // Before the work, which is as much again.
    budget.spendWrites(doomed.count)
    try budget.check()
    let isDoomed = Set(doomed)
    for object in doomed { try checkDenial(object, isDoomed) }
    for object in doomed {
      for holder in holders(of: object) where !isDoomed.contains(holder.object) {
        try nullify(holder, deleting: object)
      }
    }
    for object in doomed {
      guard let record = state.record(object) else { continue }
      write(object, nil)
      noteEnd(of: object, record)
    }
  }

  /// The object and everything that `cascade` reaches from it, in the order in which it is reached.
  private func cascade(from reference: Reference) -> [Reference] {
    var doomed = [reference]
    var seen: Set<Reference> = [reference]
    var next = 0
    while next < doomed.count {
      for relationship in relationships(of: doomed[next]) where relationship.rule == .cascade {
        for target in relationship.targets where seen.insert(target).inserted { doomed.append(target) }
      }
      next += 1
    }
    return doomed
  }

  private struct Related {
    let rule: DeleteRule
    let inverseIndex: Int?
    let targets: [Reference]
  }

  /// The relationships of an object that lead somewhere.
  private func relationships(of reference: Reference) -> [Related] {
    guard let record = state.record(reference) else { return [] }
    return record.entity.keys.compactMap { key in
      guard let relationship = key.relationship, let storage = key.storage else { return nil }
      let targets: [Reference]
      switch record.values[storage] {
      case .reference(let target): targets = [target]
      case .members(let list): targets = list.compactMap { if case .reference(let target) = $0 { target } else { nil } }
      default: return nil
      }
      return Related(rule: relationship.deleteRule, inverseIndex: relationship.inverseIndex, targets: targets)
    }
  }

  private func checkDenial(_ reference: Reference, _ doomed: Set<Reference>) throws(ModelError) {
    for relationship in relationships(of: reference) where relationship.rule == .deny {
      guard let target = relationship.targets.first(where: { !doomed.contains($0) }) else { continue }
      throw ModelError(.deleteDenied, "\(reference) cannot be deleted while it has \(target)", object: reference)
    }
  }

  /// A key of an object that names another.
  private struct Holder: Hashable {
    let object: Reference
    let key: Int
  }

  /// The keys that name an object, in the order of references and keys: those that it knows of by an inverse, and the
  /// others.
  private func holders(of object: Reference) -> [Holder] {
    var holders: Set<Holder> = []
    for relationship in relationships(of: object) {
      guard let inverse = relationship.inverseIndex else { continue }
      for target in relationship.targets { holders.insert(Holder(object: target, key: inverse)) }
    }
    for referrer in state.referrers(of: object) {
      guard let entity = state.record(referrer.object)?.entity,
        let key = entity.keys.firstIndex(where: { $0.storage == referrer.storage })
      else { continue }
      holders.insert(Holder(object: referrer.object, key: key))
    }
    return holders.sorted { ($0.object, $0.key) < ($1.object, $1.key) }
  }

  private mutating func nullify(_ holder: Holder, deleting object: Reference) throws(ModelError) {
    do throws(ModelError) {
      try release(object, from: holder.object, key: holder.key)
    } catch {
      let name = state.record(holder.object)?.entity.keys[holder.key].name ?? ""
      throw ModelError(.deleteDenied, "\(holder.object) needs \(object) as its '\(name)'", object: object)
    }
  }
}
