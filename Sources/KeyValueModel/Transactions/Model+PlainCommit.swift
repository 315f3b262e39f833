/// The commonest of all transactions, carried out without the machinery of `TransactionApplication`: it does nothing
/// that would have to be undone, or told apart operation by operation.
extension Model {
  /// Carries out a transaction that is one such setting; its preconditions hold, and `inquiry` was asked of the state
  /// before it. Nil for any other.
  mutating func commitPlainly(
    _ transaction: Transaction, _ limits: TransactionLimits, asking inquiry: WriteInquiry?
  ) -> Commit? {
    guard transaction.operations.count == 1, transaction.preparations.isEmpty,
      case .set(let reference, let keyPath, let value) = transaction.operations[0]
    else { return nil }
    return commit(
      settingPlainly: keyPath, of: reference, to: value, writer: transaction.writer, limits: limits, asking: inquiry)
  }

  /// Sets one attribute of one object to a value that the attribute takes as it is, as a transaction of its own. Nil
  /// for anything else, and for what is to fail: nothing has been done then.
  package mutating func commit(
    settingPlainly keyPath: String, of reference: Reference, to value: Value, writer: String? = nil,
    limits: TransactionLimits = .unlimited
  ) -> Commit? {
    commit(settingPlainly: keyPath, of: reference, to: value, writer: writer, limits: limits, asking: nil)
  }

  private mutating func commit(
    settingPlainly keyPath: String, of reference: Reference, to given: Value, writer: String?,
    limits: TransactionLimits, asking inquiry: WriteInquiry?
  ) -> Commit? {
    guard let index = schema.entityIndex(of: reference), let key = schema.entities[index].indexOfKey(keyPath)
    else { return nil }
    let column = schema.entities[index].layout.columns[key]
    guard let value = column.plainForm(of: given), column.isOptional || !value.isNull else { return nil }
    let hash = state.extents[index].objects.hash(of: reference)
    guard let old = state.extents[index].objects[reference, hash] else { return nil }
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
      PlainSetting(reference, key: key, isSilent: isSilent, before: old, after: new, writer: writer))
  }
}

/// What was committed before, and is carried out again: nobody is to be told of it, nor does anybody ask.
extension Model {
  /// Applies a transaction as `commit` does, where nobody asks what it did: then the commonest of all changes an object
  /// in place, and allocates nothing.
  package mutating func redo(_ transaction: Transaction, at milliseconds: Int64) throws(ModelError) {
    if redoPlainly(transaction) {
      revision += 1
    } else {
      _ = try commit(transaction, at: milliseconds)
    }
  }

  /// Sets one attribute that no index is over; says false for anything else, and for what is to fail.
  private mutating func redoPlainly(_ transaction: Transaction) -> Bool {
    guard transaction.operations.count == 1, transaction.preparations.isEmpty, transaction.preconditions.isEmpty,
      transaction.access == nil, case .set(let reference, let keyPath, let given) = transaction.operations[0],
      let index = schema.entityIndex(of: reference), let key = schema.entities[index].indexOfKey(keyPath),
      schema.entities[index].indexedKeys.isEmpty
    else { return false }
    let column = schema.entities[index].layout.columns[key]
    guard let value = column.plainForm(of: given), column.isOptional || !value.isNull else { return false }
    return state.setAttribute(of: reference, column, to: value, entity: index, revision: revision + 1)
  }
}
