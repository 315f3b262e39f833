/// A transaction being applied: the state as it is so far, and how to get back.
///
/// Everything is written through `write`, which remembers what stood there before the transaction, so that `undo` leaves
/// no trace of a failed one.
struct TransactionApplication {
  private(set) var state: ModelState
  let revision: Revision
  private var before = RecordLog()
  private var steps: [Commit.Step] = []
  private var results: [Reference] = []
  /// The members of collections without inverse that came and went, for `undo`.
  private var moves: [Move] = []
  /// The objects that were deleted.
  private var deleted: Set<Reference> = []
  /// The operations that opened the brackets that are open.
  private var openBrackets: [BracketKey: [Int]] = [:]

  // The operation under way.
  private var written = RecordLog()
  var changes = StepChanges()
  /// The objects that it has made: their collections had no value before, also where they begin without members.
  var made: Set<Reference> = []

  struct BracketKey: Hashable {
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
  init(taking state: inout ModelState, revision: Revision) {
    self.state = ModelState(placeholderFor: state.schema)
    self.revision = revision
    swap(&self.state, &state)
  }

  /// Puts the state where the caller has it, and has none any more.
  mutating func giveBack(to state: inout ModelState) { swap(&self.state, &state) }

  /// Applies the operations in order. A failure names the operation where there is more than one.
  mutating func apply(_ operations: [Operation]) throws(ModelError) {
    for (index, operation) in operations.enumerated() {
      do throws(ModelError) {
        try apply(operation)
      } catch {
        var located = error
        if operations.count > 1 { located.operation = index }
        throw located
      }
    }
    if let (bracket, opened) = openBrackets.min(by: { $0.value.last ?? 0 < $1.value.last ?? 0 }) {
      let name = state.record(bracket.object)?.entity.keys[bracket.key].name
      var error = ModelError(
        .unbalancedBracket, "a willChange has no didChange", object: bracket.object, keyPath: name)
      if operations.count > 1 { error.operation = opened.last }
      throw error
    }
  }

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

  /// What the transaction did.
  func commit(writer: String?) -> Commit {
    Commit(revision: revision, writer: writer, steps: steps, before: before.entries, results: results)
  }

  private mutating func apply(_ operation: Operation) throws(ModelError) {
    written.removeAll()
    changes = StepChanges()
    made.removeAll(keepingCapacity: true)
    switch operation {
    case .create(let reference, let values): try create(reference, values)
    case .put(let reference, let values): try put(reference, values)
    case .set(let reference, let keyPath, let value): try set(reference, keyPath, value)
    case .patch(let reference, let patch): try apply(patch, to: reference)
    case .jsonPatch(let reference, let patch): try apply(patch, to: reference)
    case .insert(let reference, let keyPath, let members, let indexes):
      try insert(members, at: indexes, into: try collection(reference, keyPath))
    case .removeIndexes(let reference, let keyPath, let indexes):
      try remove(at: indexes, from: try collection(reference, keyPath))
    case .removeMembers(let reference, let keyPath, let members):
      try remove(members, from: try collection(reference, keyPath))
    case .replace(let reference, let keyPath, let indexes, let members):
      try replace(at: indexes, with: members, in: try collection(reference, keyPath))
    case .mutateSet(let reference, let keyPath, let mutation, let members):
      try mutate(try collection(reference, keyPath), mutation, members)
    case .delete(let reference): try delete(reference)
    case .willChange(let reference, let key): return try openBracket(reference, key)
    case .didChange(let reference, let key): return try closeBracket(reference, key)
    case .require(let reference, let since): return try require(reference, since)
    }
    let writes = written.entries.map { (object: $0.object, after: $0.record) }
    steps.append(Commit.Step(kind: .change(changes.finished()), writes: writes))
    results.append(operation.reference)
  }

  // MARK: Writing

  /// The one way to change the state.
  mutating func write(_ reference: Reference, _ record: ObjectRecord?) {
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

  /// The same for an object that the caller has looked up and that has not changed since.
  mutating func store(_ value: Value, in reference: Reference, _ record: ObjectRecord, key index: Int) {
    let column = record.entity.layout.columns[index]
    guard column.storage >= 0 else { return }
    let storage = Int(column.storage)
    let isSilent = column.notifying == .manual || (column.notifying == .changed && record.values[storage] == value)
    var record = record
    record.values[storage] = value
    record.revision = revision
    write(reference, record)
    changes.noteSetting(of: reference, key: index, isSilent: isSilent)
  }

  /// Gives a collection other members. `kind` says what observers are told where that is not to be found out from what
  /// came and went.
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
    record.values[storage] = .members(list)
    record.revision = revision
    write(reference, record)
    if record.entity.referenceStorage.contains(storage) {
      state.updateReferrers(reference, storage: storage, removed: removed, inserted: inserted)
      moves.append(Move(object: reference, storage: storage, removed: removed, inserted: inserted))
    }
    changes.noteMembers(
      of: reference, key: index, from: old, to: list, removed: removed, inserted: inserted,
      as: isMade ? .setting : kind, isSilent: isSilent)
  }

  // MARK: Brackets and requirements

  private mutating func openBracket(_ reference: Reference, _ name: String) throws(ModelError) {
    let key = try bracketKey(reference, name)
    // Each operation has one result, so there are as many as operations before this one.
    openBrackets[key, default: []].append(results.count)
    steps.append(Commit.Step(kind: .willChange(reference, key: key.key), writes: []))
    results.append(reference)
  }

  private mutating func closeBracket(_ reference: Reference, _ name: String) throws(ModelError) {
    let key = try bracketKey(reference, name)
    guard let opened = openBrackets[key] else {
      throw ModelError(.unbalancedBracket, "a didChange has no willChange", object: reference, keyPath: name)
    }
    openBrackets[key] = opened.count > 1 ? opened.dropLast() : nil
    steps.append(Commit.Step(kind: .didChange(reference, key: key.key), writes: []))
    results.append(reference)
  }

  private func bracketKey(_ reference: Reference, _ name: String) throws(ModelError) -> BracketKey {
    let record = try state.requireRecord(reference)
    guard let key = record.entity.indexOfKey(name) else {
      throw ModelError(
        .undefinedKey, "\(record.entity.name) has no key '\(name)'", object: reference, keyPath: name)
    }
    return BracketKey(object: reference, key: key)
  }

  /// Looks at the object as it stood before the transaction: what the transaction itself does is no conflict.
  private mutating func require(_ reference: Reference, _ since: Revision) throws(ModelError) {
    let former = FormerState(before: before, state: state)
    guard former.record(reference) != nil, former.revision(of: reference) <= since, since < revision else {
      throw ModelError(.staleRevision, "\(reference) has changed since revision \(since)", object: reference)
    }
    results.append(reference)
  }

  /// The state as it was before the transaction.
  private struct FormerState: ObjectReader {
    let before: RecordLog
    let state: ModelState

    func record(_ reference: Reference) -> ObjectRecord? {
      if let former = before[reference] { return former }
      return state.record(reference)
    }
  }
}

extension Operation {
  /// The object that the operation is about.
  public var reference: Reference {
    switch self {
    case .create(let reference, _), .put(let reference, _), .set(let reference, _, _), .patch(let reference, _),
      .jsonPatch(let reference, _), .insert(let reference, _, _, _), .removeIndexes(let reference, _, _),
      .removeMembers(let reference, _, _), .replace(let reference, _, _, _), .mutateSet(let reference, _, _, _),
      .delete(let reference), .willChange(let reference, _), .didChange(let reference, _), .require(let reference, _):
      reference
    }
  }
}
