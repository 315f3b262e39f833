/// A transaction being applied: its operations in order, and the brackets that they open.
///
/// Neither it nor its parts can be copied: a copy would retain some twenty references, and give the state a second
/// owner.
struct TransactionApplication: ~Copyable {
  private var writer: ObjectWriter
  private var steps: [Commit.Step] = []
  private var results: [Reference] = []
  /// The positions of the operations that opened the brackets that are still open.
  private var openBrackets: [ObjectKey: [Int]] = [:]
  /// The position of the current operation.
  private var position = 0

  /// The inquiry that asks the rules, or nil if none are asked.
  private var inquiry: WriteInquiry?

  /// Takes the state from the caller until `returnState`.
  init(
    taking state: inout ModelState, revision: Revision, milliseconds: Int64, limits: TransactionLimits,
    inquiry: WriteInquiry? = nil
  ) {
    self.inquiry = inquiry
    writer = ObjectWriter(
      editor: StateEditor(taking: &state, revision: revision, milliseconds: milliseconds, limits: limits))
    writer.editor.viewer = inquiry?.viewer
  }

  /// Returns the state to the caller, and has none from then on.
  mutating func returnState(to state: inout ModelState) { writer.editor.returnState(to: &state) }

  /// Undoes all changes.
  mutating func undo() { writer.editor.undo() }

  /// Returns the commit of the applied operations.
  func commit(writer name: String?) -> Commit {
    Commit(
      revision: writer.editor.revision, writer: name, steps: steps, before: writer.editor.before.entries,
      results: results)
  }

  /// Applies the operations in order. An error names the operation if there is more than one.
  mutating func apply(_ operations: [Operation], _ preparations: [Preparation]) throws(ModelError) {
    for (index, operation) in operations.enumerated() {
      position = index
      do throws(ModelError) {
        try ask(operation, index)
        try apply(operation, index < preparations.count ? preparations[index] : .none)
        try askFarChanges(by: operation, index)
      } catch {
        var located = error
        if operations.count > 1 { located.operation = index }
        throw located
      }
    }
    if !openBrackets.isEmpty, let (bracket, opened) = openBrackets.min(by: { $0.value.last ?? 0 < $1.value.last ?? 0 })
    {
      let name = writer.editor.state.record(bracket.object)?.entity.keys[bracket.key].name
      throw ModelError(
        .unbalancedBracket, "a willChange has no didChange", object: bracket.object, keyPath: name,
        operation: operations.count > 1 ? opened.last : nil)
    }
    try askRules(after: operations)
    try writer.editor.checkGrowth()
  }

  private mutating func ask(_ operation: Operation, _ index: Int) throws(ModelError) {
    guard var asked = inquiry else { return }
    inquiry = nil
    let state = writer.editor.state
    // The first operation meets the state before the transaction, which it was asked about already.
    if index > 0 { try asked.ask(operation, index, former: former, present: state, in: state.schema) }
    writer.keysLeftAlone = asked.keysLeftAlone(by: operation, in: state)
    writer.closedKeys = asked.closedKeys(to: operation, in: state)
    inquiry = asked
  }

  private mutating func askFarChanges(by operation: Operation, _ index: Int) throws(ModelError) {
    let changes = writer.editor.farChanges
    guard !changes.isEmpty, var asked = inquiry else { return }
    writer.editor.budget.spendWrites(changes.count)
    try writer.editor.budget.check()
    inquiry = nil
    try asked.ask(about: changes, by: operation, index, former: former, in: writer.editor.state.schema)
    inquiry = asked
  }

  private func askRules(after operations: [Operation]) throws(ModelError) {
    guard var inquiry else { return }
    do throws(ModelError) {
      try inquiry.ask(after: steps, of: operations, former: former, present: writer.editor.state)
    } catch {
      var located = error
      if operations.count == 1 { located.operation = nil }
      throw located
    }
  }

  private mutating func apply(_ operation: Operation, _ preparation: Preparation) throws(ModelError) {
    writer.editor.beginOperation()
    var patched: PreparedPatch?
    writer.isChecked = false
    switch preparation {
    case .none: break
    case .checked: writer.isChecked = true
    case .refused(let error): try refuse(operation, error)
    case .patched(let prepared): patched = prepared
    }
    switch operation {
    case .create(let reference, let values): try writer.create(reference, values)
    case .put(let reference, let values): try writer.put(reference, values)
    case .set(let reference, let keyPath, let value): try writer.set(reference, keyPath, value)
    case .patch(let reference, let patch): try writer.apply(patch, to: reference)
    case .jsonPatch(let reference, let patch): try writer.apply(patch, patched, to: reference)
    case .insert(let reference, let keyPath, let members, let indexes):
      try writer.insert(members, at: indexes, into: try writer.collection(reference, keyPath))
    case .removeIndexes(let reference, let keyPath, let indexes):
      try writer.remove(at: indexes, from: try writer.collection(reference, keyPath))
    case .removeMembers(let reference, let keyPath, let members):
      try writer.remove(members, from: try writer.collection(reference, keyPath))
    case .replace(let reference, let keyPath, let indexes, let members):
      try writer.replace(at: indexes, with: members, in: try writer.collection(reference, keyPath))
    case .mutateSet(let reference, let keyPath, let mutation, let members):
      try writer.mutate(try writer.collection(reference, keyPath), mutation, members)
    case .delete(let reference): try writer.editor.delete(reference)
    case .willChange(let reference, let key): return try openBracket(reference, key)
    case .didChange(let reference, let key): return try closeBracket(reference, key)
    case .require(let reference, let since): return try require(reference, since)
    case .lifetime(let reference, let lifetime): try writer.editor.setLifetime(lifetime, of: reference)
    }
    try writer.editor.checkBudget()
    steps.append(writer.editor.finishedOperation())
    if case .lifetime = operation { return }
    results.append(operation.reference)
  }

  /// Throws the refusal of a value, unless the state of the objects gives an error that comes before it.
  private func refuse(_ operation: Operation, _ refusal: ModelError) throws(ModelError) {
    switch operation {
    case .create(let reference, _): try writer.requireAbsent(reference)
    case .put: break
    case .set(let reference, let keyPath, _): _ = try writer.place(reference, keyPath)
    case .insert(let reference, let keyPath, _, _), .replace(let reference, let keyPath, _, _),
      .mutateSet(let reference, let keyPath, _, _):
      _ = try writer.collection(reference, keyPath)
    default: _ = try writer.editor.state.requireRecord(operation.reference)
    }
    throw refusal
  }

  // MARK: Brackets and requirements

  private mutating func openBracket(_ reference: Reference, _ name: String) throws(ModelError) {
    let key = try bracketKey(reference, name)
    openBrackets[key, default: []].append(position)
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

  private func bracketKey(_ reference: Reference, _ name: String) throws(ModelError) -> ObjectKey {
    let record = try writer.editor.state.requireRecord(reference)
    guard let key = record.entity.indexOfKey(name) else {
      throw ModelError(.undefinedKey, record.entity.undefined(name), object: reference, keyPath: name)
    }
    return ObjectKey(object: reference, key: key)
  }

  /// Checks the object as it was before the transaction: changes of the transaction itself are not a conflict.
  private mutating func require(_ reference: Reference, _ since: Revision) throws(ModelError) {
    let former = former
    guard former.record(reference) != nil, former.revision(of: reference) <= since, since < writer.editor.revision
    else {
      throw ModelError(.staleRevision, "\(reference) has changed since revision \(since)", object: reference)
    }
    results.append(reference)
  }

  private var former: FormerState { writer.editor.former }
}
