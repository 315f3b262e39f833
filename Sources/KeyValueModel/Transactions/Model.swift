/// The objects and their revision, which the single writer owns. A value without locks, clocks or files.
public struct Model: Sendable {
  /// The current objects.
  public private(set) var state: ModelState
  /// The revision of the last committed transaction.
  public private(set) var revision: Revision

  /// Creates a model without objects.
  public init(schema: Schema) {
    self.init(state: ModelState(schema: schema), revision: 0)
  }

  /// Creates a model from the objects at a revision.
  public init(state: ModelState, revision: Revision) {
    self.state = state
    self.revision = revision
  }

  /// The schema of the objects.
  public var schema: Schema { state.schema }

  /// Applies a transaction and gives it the next revision.
  ///
  /// A transaction that fails, or exceeds the limits, leaves everything as it was. `milliseconds`, since 1970, is the
  /// time at which lifetimes begin.
  public mutating func commit(
    _ transaction: Transaction, limits: TransactionLimits = .unlimited, at milliseconds: Int64 = 0
  ) throws(ModelError) -> Commit {
    let inquiry = try transaction.access.map { access throws(ModelError) in try ask(access, about: transaction, limits)
    }
    do throws(ModelError) {
      for precondition in transaction.preconditions { try check(precondition) }
    } catch {
      try ask(inquiry, aboutMakingIn: transaction, limits)
      throw error
    }
    if let set = plainSet(transaction), let commit = commit(set, writer: transaction.writer, limits, asking: inquiry) {
      return commit
    }
    var application = TransactionApplication(
      taking: &state, revision: revision + 1, milliseconds: milliseconds, limits: limits, inquiry: inquiry)
    do throws(ModelError) {
      try application.apply(transaction.operations, transaction.preparations)
    } catch {
      application.undo()
      application.returnState(to: &state)
      try ask(inquiry, aboutMakingIn: transaction, limits)
      throw transaction.access == nil ? error : WriteInquiry.guarded(error, in: transaction.operations)
    }
    application.returnState(to: &state)
    revision += 1
    return application.commit(writer: transaction.writer)
  }

  /// Asks the rules before the transaction is applied, as far as the objects that it names exist.
  private func ask(
    _ access: WriteAccess, about transaction: Transaction, _ limits: TransactionLimits
  ) throws(ModelError) -> WriteInquiry {
    var inquiry = WriteInquiry(access)
    for (index, operation) in transaction.operations.enumerated() {
      do throws(ModelError) {
        try inquiry.ask(operation, index, former: state, present: state, in: schema)
      } catch {
        try ask(inquiry, aboutMakingIn: transaction, limits, before: index)
        var located = error
        if transaction.operations.count > 1 { located.operation = index }
        throw located
      }
    }
    return inquiry
  }

  /// Asks the rules, for a refused transaction, whether its operations up to `end` may make their creations and
  /// changes.
  private func ask(
    _ inquiry: WriteInquiry?, aboutMakingIn transaction: Transaction, _ limits: TransactionLimits,
    before end: Int? = nil
  ) throws(ModelError) {
    guard var inquiry else { return }
    do throws(ModelError) {
      let operations = transaction.operations.prefix(end ?? transaction.operations.count)
      try inquiry.ask(afterFailureOf: operations, transaction.preparations, in: self, limits)
    } catch {
      var located = error
      if transaction.operations.count == 1 { located.operation = nil }
      throw located
    }
  }

  private func check(_ precondition: Precondition) throws(ModelError) {
    switch precondition {
    case .impossible:
      throw ModelError(.staleRevision, "the target of the request has no version that a precondition could match")
    case .exists(let reference):
      guard state.record(reference) != nil else { throw stale("\(reference) does not exist", reference) }
    case .holds(let reference, let condition):
      guard condition(state) else { throw stale("\(reference) has changed", reference) }
    case .absent(let reference):
      guard state.record(reference) == nil else { throw stale("\(reference) already exists", reference) }
    case .unchangedObject(let reference, let since):
      _ = try state.requireRecord(reference)
      guard since <= revision, state.revision(of: reference) <= since else {
        throw stale("\(reference) \(Self.other(than: since))", reference)
      }
    case .differs(let reference, let text, let revisions):
      guard let record = state.record(reference) else { return }
      let path = try text.map { text throws(ModelError) in try schema.resolve(text, from: record.entity) }
      let current = path.map { state.revision(of: reference, along: $0) } ?? state.revision(of: reference)
      guard !revisions.contains(current) else {
        throw stale("\(reference) still matches revision \(current)", reference, text)
      }
    case .unchangedKeyPath(let reference, let text, let since):
      let path = try schema.resolve(text, from: state.requireRecord(reference).entity)
      guard since <= revision, state.revision(of: reference, along: path) <= since else {
        throw stale("\(text) of \(reference) \(Self.other(than: since))", reference, text)
      }
    }
  }

  /// Describes a version other than that of revision `since`; 0 stands for versions that this store has never had.
  private static func other(than since: Revision) -> String {
    since == 0 ? "matches none of the given versions" : "does not match revision \(since)"
  }

  private func stale(_ detail: String, _ object: Reference, _ keyPath: String? = nil) -> ModelError {
    ModelError(.staleRevision, detail, object: object, keyPath: keyPath)
  }
}

/// The most frequent transaction, applied without the machinery of `TransactionApplication`: it does nothing that would
/// have to be undone, or kept apart by operation.
extension Model {
  /// The setting of one attribute of one object to a value that the attribute takes as it is.
  private struct PlainSet {
    let reference: Reference
    /// The indexes of the entity in the schema, and of the key in the entity.
    let entity: Int
    let key: Int
    let column: RecordLayout.Column
    let value: Value
  }

  /// Returns the setting of a key path, or nil if it is not plain, or certain to fail.
  private func plainSet(_ reference: Reference, _ keyPath: String, _ given: Value) -> PlainSet? {
    guard let entity = schema.entityIndex(of: reference), let key = schema.entities[entity].indexOfKey(keyPath)
    else { return nil }
    let column = schema.entities[entity].layout.columns[key]
    guard let value = column.plainForm(of: given), column.isOptional || !value.isNull else { return nil }
    return PlainSet(reference: reference, entity: entity, key: key, column: column, value: value)
  }

  /// Returns the setting that is all of a transaction that was not prepared; nil for any other transaction.
  private func plainSet(_ transaction: Transaction) -> PlainSet? {
    guard transaction.operations.count == 1, transaction.preparations.isEmpty,
      case .set(let reference, let keyPath, let value) = transaction.operations[0]
    else { return nil }
    return plainSet(reference, keyPath, value)
  }

  /// Sets one attribute of one object to a value that the attribute accepts as it is, as a transaction of its own.
  ///
  /// Returns nil, and has changed nothing, for any other setting and for one that would fail.
  package mutating func commit(
    settingPlainly keyPath: String, of reference: Reference, to value: Value, writer: String? = nil,
    limits: TransactionLimits = .unlimited
  ) -> Commit? {
    plainSet(reference, keyPath, value).flatMap { commit($0, writer: writer, limits, asking: nil) }
  }

  /// Commits a setting whose preconditions hold; `inquiry` was asked about the state before it. Returns nil if it would
  /// fail.
  private mutating func commit(
    _ set: PlainSet, writer: String?, _ limits: TransactionLimits, asking inquiry: WriteInquiry?
  ) -> Commit? {
    let (reference, column, value) = (set.reference, set.column, set.value)
    let hash = state.extents[set.entity].objects.hash(of: reference)
    guard let old = state.extents[set.entity].objects[reference, hash] else { return nil }
    let former = old.values[Int(column.storage)]
    let (size, formerSize) = (value.storedSize, former.storedSize)
    let growth = size - formerSize
    var budget = TransactionBudget(limits)
    budget.spend(writing: size.textBytes, over: formerSize.textBytes)
    budget.spendWrites()
    guard budget.isKept, growth.textBytes <= 0 || old.textBytes + growth.textBytes <= limits.objectBytes,
      growth.memoryBytes <= 0 || state.memoryBytes + growth.memoryBytes <= limits.memoryBytes
    else { return nil }
    let new = old.setting(value, of: column, growth: growth, revision: revision + 1)
    if let inquiry, !inquiry.permits(new, insteadOf: old, of: reference, in: state) { return nil }
    revision += 1
    state.replaceAttributes(old, with: new, hash)
    let isSilent = column.notifying == .manual || (column.notifying == .changed && former.isWrittenAlike(value))
    return Commit(
      revision: revision,
      PlainSetting(reference, key: set.key, isSilent: isSilent, before: old, after: new, writer: writer))
  }

  /// Applies a transaction that was committed before, as `commit` does, if its effects are not needed. The setting of
  /// an attribute that is not indexed then changes its object in place, without an allocation.
  package mutating func redo(_ transaction: Transaction, at milliseconds: Int64) throws(ModelError) {
    if transaction.preconditions.isEmpty, transaction.access == nil, let set = plainSet(transaction),
      schema.entities[set.entity].indexedKeys.isEmpty,
      state.setAttribute(of: set.reference, set.column, to: set.value, entity: set.entity, revision: revision + 1)
    {
      revision += 1
    } else {
      _ = try commit(transaction, at: milliseconds)
    }
  }
}
