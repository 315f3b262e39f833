/// A state that a transaction is changing, with the changes so far and what is needed to undo them.
///
/// Every object is written through `write`, which remembers its record from before the transaction, so that `undo`
/// leaves no trace of a failed transaction.
struct StateEditor: ~Copyable {
  private(set) var state: ModelState
  let revision: Revision
  /// The time of the commit, in milliseconds since 1970.
  private let milliseconds: Int64
  /// The part of the limits that the transaction has used.
  var budget: TransactionBudget
  /// The bytes of memory that the objects took before the transaction.
  private let formerMemoryBytes: Int
  /// The objects that were written, as they were before the transaction.
  private(set) var before = RecordLog()
  /// The viewer whose read rules limit what the transaction may refer to, or nil if no rules are asked.
  var viewer: Viewer?
  /// The members added to and removed from collections without inverse, for `undo`.
  private var moves: [Move] = []
  /// The objects that were deleted.
  private var deleted: Set<Reference> = []

  // The current operation.
  private var written = RecordLog()
  private var changes = StepChanges()
  /// The objects that it created: their collections had no value before, even if they begin without members.
  private var made: Set<Reference> = []
  /// The keys that it changed through their inverses, which are on other objects, or are other keys, than it names; in
  /// order. Recorded only if rules are asked.
  private(set) var farChanges: [ObjectKey] = []

  private struct Move {
    let object: Reference
    let storage: Int
    let removed: [Value]
    let inserted: [Value]
  }

  /// Takes the state from the caller until `returnState`: with a second owner, each write would copy a path of the
  /// tree.
  init(taking state: inout ModelState, revision: Revision, milliseconds: Int64, limits: TransactionLimits) {
    self.milliseconds = milliseconds
    budget = TransactionBudget(limits)
    formerMemoryBytes = state.memoryBytes
    self.state = ModelState(placeholderFor: state.schema)
    self.revision = revision
    swap(&self.state, &state)
  }

  /// Returns the state to the caller, and has none from then on.
  mutating func returnState(to state: inout ModelState) { swap(&self.state, &state) }

  /// Undoes all changes of the transaction.
  mutating func undo() {
    for move in moves.reversed() {
      state.updateReferrers(move.object, storage: move.storage, removed: move.inserted, inserted: move.removed)
    }
    for (reference, record) in before.entries {
      // A deleted and recreated object has other members: removing it first counts them all.
      if deleted.contains(reference) { state.replace(reference, with: nil) }
      state.replace(reference, with: record)
    }
  }

  /// The state as it was before the transaction.
  var former: FormerState { FormerState(before: before, state: state) }

  // MARK: Operations

  /// Begins an operation, with no changes yet.
  mutating func beginOperation() {
    // The former entries, if there are any, belong to a step.
    written = RecordLog()
    changes = StepChanges()
    if !made.isEmpty { made.removeAll(keepingCapacity: true) }
    if !farChanges.isEmpty { farChanges.removeAll(keepingCapacity: true) }
  }

  /// Records, for the rules, that the operation changes a key through its inverse.
  private mutating func noteFarChange(of object: Reference, key: Int) {
    if viewer != nil { farChanges.append(ObjectKey(object: object, key: key)) }
  }

  /// Returns the changes of the current operation.
  func finishedOperation() -> Commit.Step {
    Commit.Step(kind: .change(changes.finished()), writes: written.entries)
  }

  /// Throws if the transaction has exceeded its limits, or if the current operation has made an object too large, or
  /// one that was too large before even larger.
  func checkBudget() throws(ModelError) {
    try budget.check()
    let limit = budget.limits.objectBytes
    for (object, record) in written.entries {
      guard let record, record.textBytes > limit, record.textBytes > before[object]??.textBytes ?? 0 else { continue }
      throw ModelError(.contentTooLarge, "\(object) would have more than \(limit) bytes", object: object)
    }
  }

  /// Throws `overloaded` if the transaction makes the objects take more memory than before, and more than they may.
  func checkGrowth() throws(ModelError) {
    guard state.memoryBytes > budget.limits.memoryBytes, state.memoryBytes > formerMemoryBytes else { return }
    throw budget.limits.memoryBound.refusal
  }

  // MARK: Writing

  /// Creates an object without setting any of its keys.
  mutating func make(_ reference: Reference, _ entity: Entity) {
    made.insert(reference)
    write(
      reference,
      ObjectRecord(
        reference, entity: entity, revision: revision, createdAt: revision, values: entity.emptyValues))
  }

  /// Replaces the lifetime of an object. No key is set.
  mutating func setLifetime(_ lifetime: Lifetime, of reference: Reference) throws(ModelError) {
    var record = try state.requireRecord(reference)
    record.lease = Lease(lifetime, revision: revision, milliseconds: milliseconds)
    write(reference, record)
  }

  /// Writes an object; every change of an object goes through here.
  mutating func write(_ reference: Reference, _ record: ObjectRecord?) {
    budget.spendWrites()
    let old = state.replace(reference, with: record)
    before.note(reference, old, replacing: false)
    if record == nil { deleted.insert(reference) }
    written.note(reference, record, replacing: true)
  }

  /// Sets one stored key to a checked value, and notes the change for the observers unless the key is silent.
  mutating func store(_ value: Value, in reference: Reference, key index: Int) {
    guard let record = state.record(reference) else { return }
    store(value, in: reference, record, key: index)
  }

  /// Sets a key of an object that the caller has looked up and that has not changed since. `size` has the sizes of the
  /// value and of the one before it, if they are known.
  mutating func store(
    _ value: Value, in reference: Reference, _ record: ObjectRecord, key index: Int,
    size: (new: ValueSize, old: ValueSize)? = nil
  ) {
    let column = record.entity.layout.columns[index]
    guard column.storage >= 0 else { return }
    let storage = Int(column.storage)
    let isSilent =
      column.notifying == .manual
      || (column.notifying == .changed && record.values[storage].isWrittenAlike(value))
    let (new, old) = size ?? (value.storedSize, record.values[storage].storedSize)
    budget.spend(writing: new.textBytes, over: old.textBytes)
    var record = record
    record.set(value, at: storage, growth: new - old)
    record.noteSetting(by: revision, isReadFromAfar: column.isReadFromAfar)
    write(reference, record)
    changes.noteSetting(of: reference, key: index, isSilent: isSilent)
  }

  /// Replaces the members of a collection. `kind` is the change to report to observers if it does not follow from the
  /// members inserted and removed.
  mutating func store(
    _ list: MemberList, in reference: Reference, key index: Int, removed: [Value], inserted: [Value],
    as kind: StepChanges.CollectionKind = .difference
  ) {
    guard var record = state.record(reference), let storage = record.entity.keys[index].storage,
      case .members(let old) = record.values[storage]
    else { return }
    let notifying = record.entity.notifying(index)
    let isMade = made.contains(reference)
    let isSilent = notifying == .manual || (notifying == .changed && old == list && !isMade)
    // If an object that is created in place has inserted itself already, `inserted` has more than the new members.
    let isDifference = old.count - removed.count + inserted.count == list.count
    let new = isDifference ? ValueSize(ofMembers: inserted) : Value.members(list).size
    let former = isDifference ? ValueSize(ofMembers: removed) : Value.members(old).size
    budget.spend(writing: new.textBytes, over: former.textBytes)
    budget.spend(removed.count + inserted.count)
    // The two lists are compared member by member.
    if notifying == .changed { budget.spend(TransactionBudget.steps(of: list.count)) }
    var growth = new - former
    if isDifference { growth.memoryBytes += list.structureBytes - old.structureBytes }
    growth.memoryBytes += record.entity.referrerBytes(of: list.count - old.count, at: storage)
    record.set(.members(list), at: storage, growth: growth)
    record.noteSetting(by: revision, isReadFromAfar: record.entity.layout.columns[index].isReadFromAfar)
    write(reference, record)
    if record.entity.referenceStorage.contains(storage) {
      state.updateReferrers(reference, storage: storage, removed: removed, inserted: inserted)
      moves.append(Move(object: reference, storage: storage, removed: removed, inserted: inserted))
    }
    changes.noteMembers(
      of: reference, key: index, from: old, to: list, removed: removed, inserted: inserted,
      as: isMade ? .setting : kind, isSilent: isSilent)
  }

  /// Notes that the keys of a deleted object have lost their values. Its observers are notified of the deletion itself;
  /// these changes count if the transaction creates the object again.
  private mutating func noteEnd(of reference: Reference, _ record: ObjectRecord) {
    for (index, key) in record.entity.keys.enumerated() {
      guard let storage = key.storage else { continue }
      let isSilent = key.notifying == .manual || (key.notifying == .changed && record.values[storage].isNull)
      changes.noteSetting(of: reference, key: index, isSilent: isSilent)
    }
  }

  // MARK: Relationships and their inverses

  /// Returns the object that a value names for a relationship, or nil for null.
  func target(
    of value: Value, _ key: Key, destination: String, _ owner: Reference
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
        throw invalid(.invalidValue, "'\(key.name)': '\(text)' is not a reference")
      }
      reference = given
    default: throw invalid(.invalidValue, "'\(key.name)' must be a reference such as \"\(destination)/1\"")
    }
    guard let entity = state.schema.entity(of: reference) else {
      throw invalid(
        .wrongEntity, "'\(key.name)' must refer to a \(destination); entity '\(reference.entity)' does not exist")
    }
    guard entity.isKind(of: destination) else {
      throw invalid(.wrongEntity, "'\(key.name)' must refer to a \(destination); \(reference) is not one")
    }
    guard state.record(reference) != nil, mayName(reference, key, owner) else {
      throw invalid(.invalidValue, "'\(key.name)': object \(reference) does not exist")
    }
    return reference
  }

  /// Returns true if the writer may name an existing object as a value. An object that the writer may not read counts
  /// as missing, unless the key had it before the transaction.
  private func mayName(_ reference: Reference, _ key: Key, _ owner: Reference) -> Bool {
    guard let viewer else { return true }
    let former = former
    // Objects that the transaction itself has created may be named.
    guard let record = former.record(reference), !viewer.mayRead(reference, record, in: former) else { return true }
    guard let holder = former.record(owner), let index = holder.entity.indexOfKey(key.name) else { return false }
    switch former.value(of: holder, owner, key: index) {
    case .reference(let old): return old == reference
    case .members(let list): return list.contains(.reference(reference))
    default: return false
    }
  }

  /// False if an error must not name an object and the value of its key, because the writer may not read that.
  private func mayTell(of holder: Reference, key: Int) -> Bool {
    guard let viewer else { return true }
    let former = former
    guard let record = former.record(holder) else { return true }
    return viewer.mayRead(holder, record, in: former) && !viewer.hiddenKeys(of: record.entity).contains(key)
  }

  /// Sets a to-one relationship, and the other sides if it has an inverse: the old partner releases the owner, and the
  /// new partner's previous one is released.
  mutating func connect(
    _ owner: Reference, key index: Int, _ toOne: ToOne, to new: Reference?
  ) throws(ModelError) {
    let old = state.value(of: owner, key: index)
    let value = new.map(Value.reference) ?? .null
    store(value, in: owner, key: index)
    guard let inverse = toOne.inverseIndex, old != value else { return }
    if case .reference(let partner) = old { try release(owner, from: partner, key: inverse) }
    if let new { try attach(owner, to: new, key: inverse, reverse: index) }
  }

  // MARK: The other side

  /// Removes `object` from the far side `key` of `holder`, if it is there.
  mutating func release(_ object: Reference, from holder: Reference, key index: Int) throws(ModelError) {
    guard let record = state.record(holder) else { return }
    switch state.value(of: record, holder, key: index) {
    case .reference(object):
      noteFarChange(of: holder, key: index)
      let key = record.entity.keys[index]
      guard key.isOptional else {
        guard mayTell(of: holder, key: index) else {
          throw ModelError(
            .nullNotAllowed, "the other side of a relationship must have a value and would lose \(object)",
            object: object)
        }
        throw ModelError(
          .nullNotAllowed, "'\(key.name)' of \(holder) must have a value and would lose \(object)", object: holder,
          keyPath: key.name)
      }
      store(.null, in: holder, key: index)
    case .members(var list):
      guard list.remove(.reference(object)) != nil else { return }
      noteFarChange(of: holder, key: index)
      store(list, in: holder, key: index, removed: [.reference(object)], inserted: [])
    default: break
    }
  }

  /// Adds `object` to the far side `key` of `holder`: a collection at its end, a to-one in place of its previous
  /// object, from which the holder is released under `reverse`.
  mutating func attach(
    _ object: Reference, to holder: Reference, key index: Int, reverse: Int
  ) throws(ModelError) {
    guard let record = state.record(holder) else { return }
    switch state.value(of: record, holder, key: index) {
    case .members(var list):
      guard list.insert(.reference(object)) != nil else { return }
      noteFarChange(of: holder, key: index)
      store(list, in: holder, key: index, removed: [], inserted: [.reference(object)])
    case .reference(let rival):
      if rival == object { return }
      noteFarChange(of: holder, key: index)
      try release(holder, from: rival, key: reverse)
      store(.reference(object), in: holder, key: index)
    default:
      noteFarChange(of: holder, key: index)
      store(.reference(object), in: holder, key: index)
    }
  }

  // MARK: Deletion by the delete rules

  /// Deletes an object and those that its rules delete with it; keys of other objects that named them are cleared.
  mutating func delete(_ reference: Reference) throws(ModelError) {
    _ = try state.requireRecord(reference)
    let doomed = cascade(from: reference)
    // Checked before the work, which takes as much again.
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

  /// Returns the object and all that `cascade` reaches from it, in the order of discovery.
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

  /// Returns the relationships of an object that have targets.
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

  /// Returns the keys that name an object, both those that it knows by an inverse and all others, in the order of
  /// references and keys.
  private func holders(of object: Reference) -> [ObjectKey] {
    var holders: Set<ObjectKey> = []
    for relationship in relationships(of: object) {
      guard let inverse = relationship.inverseIndex else { continue }
      for target in relationship.targets { holders.insert(ObjectKey(object: target, key: inverse)) }
    }
    for referrer in state.referrers(of: object) {
      guard let entity = state.record(referrer.object)?.entity,
        let key = entity.keys.firstIndex(where: { $0.storage == referrer.storage })
      else { continue }
      holders.insert(ObjectKey(object: referrer.object, key: key))
    }
    return holders.sorted { ($0.object, $0.key) < ($1.object, $1.key) }
  }

  private mutating func nullify(_ holder: ObjectKey, deleting object: Reference) throws(ModelError) {
    do throws(ModelError) {
      try release(object, from: holder.object, key: holder.key)
    } catch {
      let name = state.record(holder.object)?.entity.keys[holder.key].name ?? ""
      throw ModelError(.deleteDenied, "\(holder.object) needs \(object) as its '\(name)'", object: object)
    }
  }
}

/// A key of an object.
struct ObjectKey: Hashable {
  /// The object.
  let object: Reference
  /// The index of the key in its entity.
  let key: Int
}
