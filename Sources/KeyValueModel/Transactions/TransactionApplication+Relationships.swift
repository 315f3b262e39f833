/// To-one relationships, their inverses, and deletion.
extension TransactionApplication {
  /// The object that a value names for a relationship, nil for null.
  func target(
    of value: Value, _ key: Key, _ toOne: ToOne, _ owner: Reference
  ) throws(ModelError) -> Reference? {
    func invalid(_ code: ModelError.Code, _ detail: String) -> ModelError {
      ModelError(code, detail, object: owner, keyPath: key.name)
    }

    let reference: Reference
    switch value {
    case .null: return nil
    case .reference(let given): reference = given
    case .string(let text):
      guard let given = Reference(text) else {
        throw invalid(.invalidValue, "'\(key.name)': '\(text)' is no reference")
      }
      reference = given
    default: throw invalid(.invalidValue, "'\(key.name)' wants a reference such as \"\(toOne.destination)/1\"")
    }
    guard let entity = state.schema.entity(named: reference.entity) else {
      throw invalid(
        .wrongEntity, "'\(key.name)' wants a \(toOne.destination); there is no entity '\(reference.entity)'")
    }
    guard entity.isKind(of: toOne.destination) else {
      throw invalid(.wrongEntity, "'\(key.name)' wants a \(toOne.destination), and \(reference) is none")
    }
    guard state.record(reference) != nil else {
      throw invalid(.invalidValue, "'\(key.name)': there is no object \(reference)")
    }
    return reference
  }

  /// Sets a to-one, and the other sides where it has an inverse: the old partner lets go, and so does the partner that
  /// the new one had before.
  mutating func connect(
    _ owner: Reference, key index: Int, _ toOne: ToOne, to new: Reference?
  ) throws(ModelError) {
    let old = state.value(of: owner, at: CollectionOfOne(index))
    let value = new.map(Value.reference) ?? .null
    store(value, in: owner, key: index)
    guard let inverse = toOne.inverseIndex, old != value else { return }
    if case .reference(let partner) = old { try disconnect(partner, key: inverse, from: owner) }
    guard let new else { return }
    if case .reference(let rival) = state.value(of: new, at: CollectionOfOne(inverse)) {
      if rival == owner { return }
      try disconnect(rival, key: index, from: new)
    }
    store(.reference(owner), in: new, key: inverse)
  }

  /// Sets a far side to null, where it still names `partner`.
  private mutating func disconnect(
    _ reference: Reference, key index: Int, from partner: Reference
  ) throws(ModelError) {
    guard let record = state.record(reference),
      state.value(of: record, reference, key: index) == .reference(partner)
    else { return }
    let key = record.entity.keys[index]
    guard key.isOptional else {
      throw ModelError(
        .nullNotAllowed, "'\(key.name)' of \(reference) must have a value and would lose \(partner)",
        object: reference, keyPath: key.name)
    }
    store(.null, in: reference, key: index)
  }

  /// Deletes an object and what its rules take along; whoever else named them names nothing.
  mutating func delete(_ reference: Reference) throws(ModelError) {
    _ = try state.requireRecord(reference)
    let doomed = cascade(from: reference)
    let isDoomed = Set(doomed)
    for object in doomed { try checkDenial(object, isDoomed) }
    for object in doomed {
      for referrer in state.referrers(of: object) where !isDoomed.contains(referrer.object) {
        try nullify(referrer, deleting: object)
      }
    }
    for object in doomed {
      guard let record = state.record(object) else { continue }
      write(object, nil)
      // Whoever observed it hears of its end; these count where the transaction makes the object anew.
      for (index, key) in record.entity.keys.enumerated() {
        guard let storage = key.storage else { continue }
        let isSilent = key.notifying == .manual || (key.notifying == .changed && record.values[storage].isNull)
        note(object, index, isSilent: isSilent)
      }
    }
  }

  /// The object and everything that `cascade` reaches from it, in the order in which it is reached.
  private func cascade(from reference: Reference) -> [Reference] {
    var doomed = [reference]
    var seen: Set<Reference> = [reference]
    var next = 0
    while next < doomed.count {
      for (toOne, target) in relationships(of: doomed[next]) where toOne.deleteRule == .cascade {
        if seen.insert(target).inserted { doomed.append(target) }
      }
      next += 1
    }
    return doomed
  }

  private func relationships(of reference: Reference) -> [(ToOne, Reference)] {
    guard let record = state.record(reference) else { return [] }
    return record.entity.keys.compactMap { key in
      guard case .toOne(let toOne) = key.kind, let storage = key.storage,
        case .reference(let target) = record.values[storage]
      else { return nil }
      return (toOne, target)
    }
  }

  private func checkDenial(_ reference: Reference, _ doomed: Set<Reference>) throws(ModelError) {
    for (toOne, target) in relationships(of: reference)
    where toOne.deleteRule == .deny && !doomed.contains(target) {
      throw ModelError(
        .deleteDenied, "\(reference) cannot be deleted while it has \(target)", object: reference)
    }
  }

  private mutating func nullify(_ referrer: ModelState.Referrer, deleting object: Reference) throws(ModelError) {
    guard let entity = state.record(referrer.object)?.entity,
      let index = entity.keys.firstIndex(where: { $0.storage == referrer.storage })
    else { return }
    guard entity.keys[index].isOptional else {
      throw ModelError(
        .deleteDenied, "\(referrer.object) needs \(object) as its '\(entity.keys[index].name)'", object: object)
    }
    store(.null, in: referrer.object, key: index)
  }
}
