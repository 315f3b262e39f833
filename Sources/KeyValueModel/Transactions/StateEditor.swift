/// A state being changed by a transaction, what its operations have changed so far, and how to get back.
///
/// Every object is written through `write`, which remembers what stood there before the transaction, so that `undo`
/// leaves no trace of a failed one.
struct StateEditor: ~Copyable {
  private(set) var state: ModelState
  let revision: Revision
  /// When the transaction is committed, in milliseconds since 1970.
  private let milliseconds: Int64
  /// What the transaction has taken of its limits.
  var budget: TransactionBudget
  /// The bytes of memory that the objects took before the transaction.
  private let formerMemoryBytes: Int
  /// The objects that were written, as they stood before the transaction.
  private(set) var before = RecordLog()
  /// The viewer whose read rules limit what the transaction may refer to, or nil if no rules are asked.
  var viewer: Viewer?
  /// The members of collections without inverse that came and went, for `undo`.
  private var moves: [Move] = []
  /// The objects that were deleted.
  private var deleted: Set<Reference> = []

  // The operation under way.
  private var written = RecordLog()
  private var changes = StepChanges()
  /// The objects that it has made: their collections had no value before, also where they begin without members.
  private var made: Set<Reference> = []
  /// The keys that it has changed through their inverses, on other objects or other keys than it names, in order;
  /// recorded only where rules are asked.
  private(set) var farChanges: [ObjectKey] = []

  private struct Move {
    let object: Reference
    let storage: Int
    let removed: [Value]
    let inserted: [Value]
  }

  /// Takes the state away from the caller until `giveBack`: with a second owner, each write would copy a path of the
  /// tree.
  init(taking state: inout ModelState, revision: Revision, milliseconds: Int64, limits: TransactionLimits) {
    self.milliseconds = milliseconds
    budget = TransactionBudget(limits)
    formerMemoryBytes = state.memoryBytes
    self.state = ModelState(placeholderFor: state.schema)
    self.revision = revision
    swap(&self.state, &state)
  }

  /// Puts the state where the caller has it, and has none any more.
  mutating func giveBack(to state: inout ModelState) { swap(&self.state, &state) }

  /// Puts everything back.
  mutating func undo() {
    for move in moves.reversed() {
      state.updateReferrers(move.object, storage: move.storage, removed: move.inserted, inserted: move.removed)
    }
    for (reference, record) in before.entries {
      // What was deleted and made again has other members: taking it away first counts them all.
      if deleted.contains(reference) { state.replace(reference, with: nil) }
      state.replace(reference, with: record)
    }
  }

  /// The state as it was before the transaction.
  var former: FormerState { FormerState(before: before, state: state) }

  // MARK: Operations

  /// Begins an operation: nothing has been changed by it.
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

  /// What the operation under way has changed.
  func finishedOperation() -> Commit.Step {
    Commit.Step(kind: .change(changes.finished()), writes: written.entries)
  }

  /// Throws where the transaction has taken more than it may, or where the operation under way has made an object too
  /// large, or one that was too large before still larger.
  func checkBudget() throws(ModelError) {
    try budget.check()
    let limit = budget.limits.objectBytes
    for (object, record) in written.entries {
      guard let record, record.textBytes > limit, record.textBytes > before[object]??.textBytes ?? 0 else { continue }
      throw ModelError(.contentTooLarge, "\(object) would have more than \(limit) bytes", object: object)
    }
  }

  /// Throws `overloaded` where the transaction makes the objects take more memory than before, and more than they may.
  func checkGrowth() throws(ModelError) {
    guard state.memoryBytes > budget.limits.memoryBytes, state.memoryBytes > formerMemoryBytes else { return }
    throw budget.limits.memoryBound.refusal
  }

  // MARK: Writing

  /// Makes an object of which no key is set yet.
  mutating func make(_ reference: Reference, _ entity: Entity) {
    made.insert(reference)
    write(
      reference,
      ObjectRecord(
        reference, entity: entity, revision: revision, createdAt: revision, values: entity.emptyValues))
  }

  /// Gives an object a lifetime in place of the one that it has. No key is set.
  mutating func setLifetime(_ lifetime: Lifetime, of reference: Reference) throws(ModelError) {
    var record = try state.requireRecord(reference)
    record.lease = Lease(lifetime, revision: revision, milliseconds: milliseconds)
    write(reference, record)
  }

  /// The one way to change an object.
  mutating func write(_ reference: Reference, _ record: ObjectRecord?) {
    budget.spendWrites()
    let old = state.replace(reference, with: record)
    before.note(reference, old, replacing: false)
    if record == nil { deleted.insert(reference) }
    written.note(reference, record, replacing: true)
  }

  /// Sets one stored key to a value that has been checked, and notes it for the observers unless the key keeps silent.
  mutating func store(_ value: Value, in reference: Reference, key index: Int) {
    guard let record = state.record(reference) else { return }
    store(value, in: reference, record, key: index)
  }

  /// The same for an object that the caller has looked up and that has not changed since. `size` are those of the
  /// value and of the one before it, where they are known.
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

  /// Gives a collection other members. `kind` says what observers are notified of where that is not to be found out
  /// from what came and went.
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
    // Where an object that is made in place has put itself in before, what came says more than is new.
    let isDifference = old.count - removed.count + inserted.count == list.count
    let new = isDifference ? ValueSize(ofMembers: inserted) : Value.members(list).size
    let former = isDifference ? ValueSize(ofMembers: removed) : Value.members(old).size
    budget.spend(writing: new.textBytes, over: former.textBytes)
    budget.spend(removed.count + inserted.count)
    // Two lists are compared member by member.
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

  /// Notes that the keys of a deleted object have no values any more: its observers hear of its end, and these count
  /// where the transaction makes the object anew.
  private mutating func noteEnd(of reference: Reference, _ record: ObjectRecord) {
    for (index, key) in record.entity.keys.enumerated() {
      guard let storage = key.storage else { continue }
      let isSilent = key.notifying == .manual || (key.notifying == .changed && record.values[storage].isNull)
      changes.noteSetting(of: reference, key: index, isSilent: isSilent)
    }
  }

  // MARK: Relationships and their inverses

  /// The object that a value names for a relationship, nil for null.
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
        throw invalid(.invalidValue, "'\(key.name)': '\(text)' is no reference")
      }
      reference = given
    default: throw invalid(.invalidValue, "'\(key.name)' wants a reference such as \"\(destination)/1\"")
    }
    guard let entity = state.schema.entity(of: reference) else {
      throw invalid(.wrongEntity, "'\(key.name)' wants a \(destination); there is no entity '\(reference.entity)'")
    }
    guard entity.isKind(of: destination) else {
      throw invalid(.wrongEntity, "'\(key.name)' wants a \(destination), and \(reference) is none")
    }
    guard state.record(reference) != nil, mayName(reference, key, owner) else {
      throw invalid(.invalidValue, "'\(key.name)': there is no object \(reference)")
    }
    return reference
  }

  /// Whether the writer may name an object that is there as a value: to a writer who may not read it, it is not there,
  /// unless the key had it before the transaction.
  private func mayName(_ reference: Reference, _ key: Key, _ owner: Reference) -> Bool {
    guard let viewer else { return true }
    let former = former
    // What the transaction itself has made may be named.
    guard let record = former.record(reference), !viewer.mayRead(reference, record, in: former) else { return true }
    guard let holder = former.record(owner), let index = holder.entity.indexOfKey(key.name) else { return false }
    switch former.value(of: holder, owner, key: index) {
    case .reference(let old): return old == reference
    case .members(let list): return list.contains(.reference(reference))
    default: return false
    }
  }

  /// False if a problem must not name an object and what a key of it holds, because the writer may not read that.
  private func mayTell(of holder: Reference, key: Int) -> Bool {
    guard let viewer else { return true }
    let former = former
    guard let record = former.record(holder) else { return true }
    return viewer.mayRead(holder, record, in: former) && !viewer.hiddenKeys(of: record.entity).contains(key)
  }

  /// Sets a to-one, and the other sides where it has an inverse: the old partner lets go, and so does the partner that
  /// the new one had before.
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

  /// The far side `key` of `holder` lets `object` go, where it holds it.
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

  /// The far side `key` of `holder` takes `object`: a to-one in place of the object that it had, which forgets the
  /// holder under `reverse`; a collection at its end.
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

  /// The keys that name an object, in the order of references and keys: those that it knows of by an inverse, and the
  /// others.
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
