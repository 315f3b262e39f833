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
  /// The keys that it has changed through their inverses, in order; recorded only where rules are asked.
  private(set) var farChanges: [FarChange] = []

  /// A key that an operation on another object, or on another key, has changed through the key's inverse.
  struct FarChange: Hashable {
    let object: Reference
    let key: Int
  }

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
  mutating func noteFarChange(of object: Reference, key: Int) {
    if viewer != nil { farChanges.append(FarChange(object: object, key: key)) }
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
  mutating func noteEnd(of reference: Reference, _ record: ObjectRecord) {
    for (index, key) in record.entity.keys.enumerated() {
      guard let storage = key.storage else { continue }
      let isSilent = key.notifying == .manual || (key.notifying == .changed && record.values[storage].isNull)
      changes.noteSetting(of: reference, key: index, isSilent: isSilent)
    }
  }
}
