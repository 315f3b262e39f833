/// The objects and their revision: what the single writer holds. A value without locks, clocks or files.
public struct Model: Sendable {
  /// The objects as they stand.
  public internal(set) var state: ModelState
  /// The last committed transaction.
  public internal(set) var revision: Revision

  /// A model without objects.
  public init(schema: Schema) {
    self.init(state: ModelState(schema: schema), revision: 0)
  }

  /// A model as it stood at a revision.
  public init(state: ModelState, revision: Revision) {
    self.state = state
    self.revision = revision
  }

  /// What the objects are.
  public var schema: Schema { state.schema }

  /// Applies a transaction and gives it the next revision. One that fails leaves everything as it was, also one that
  /// is over the limits. `milliseconds`, since 1970, is when lifetimes begin.
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
    if let commit = commitPlainly(transaction, limits, asking: inquiry) { return commit }
    var application = TransactionApplication(
      taking: &state, revision: revision + 1, milliseconds: milliseconds, limits: limits, inquiry: inquiry)
    do throws(ModelError) {
      try application.apply(transaction.operations, transaction.preparations)
    } catch {
      application.undo()
      application.giveBack(to: &state)
      try ask(inquiry, aboutMakingIn: transaction, limits)
      throw transaction.access == nil ? error : WriteInquiry.guarded(error)
    }
    application.giveBack(to: &state)
    revision += 1
    return application.commit(writer: transaction.writer)
  }

  /// Asks the rules first, as far as what a transaction names is there before it.
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

  /// Asks, of a transaction that is refused, whether its operations up to `end` may make and change what they would.
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
      throw ModelError(.staleRevision, "what is written has no version that a condition could hold for")
    case .exists(let reference):
      guard state.record(reference) != nil else { throw stale("\(reference) is not there", reference) }
    case .holds(let reference, let condition):
      guard condition(state) else { throw stale("\(reference) is no longer what it was", reference) }
    case .absent(let reference):
      guard state.record(reference) == nil else { throw stale("\(reference) is there already", reference) }
    case .unchangedObject(let reference, let since):
      _ = try state.requireRecord(reference)
      guard since <= revision, state.revision(of: reference) <= since else {
        throw stale("\(reference) is \(Self.other(than: since))", reference)
      }
    case .differs(let reference, let text, let revisions):
      guard let record = state.record(reference) else { return }
      let path = try text.map { text throws(ModelError) in try schema.resolve(text, from: record.entity) }
      let current = path.map { state.revision(of: reference, along: $0) } ?? state.revision(of: reference)
      guard !revisions.contains(current) else {
        throw stale("\(reference) is what it was at revision \(current)", reference, text)
      }
    case .unchangedKeyPath(let reference, let text, let since):
      let path = try schema.resolve(text, from: state.requireRecord(reference).entity)
      guard since <= revision, state.revision(of: reference, along: path) <= since else {
        throw stale("\(text) of \(reference) is \(Self.other(than: since))", reference, text)
      }
    }
  }

  /// Revision 0 stands for versions that this store has never had.
  private static func other(than since: Revision) -> String {
    since == 0 ? "another version than those that were named" : "no longer what it was at revision \(since)"
  }

  private func stale(_ detail: String, _ object: Reference, _ keyPath: String? = nil) -> ModelError {
    ModelError(.staleRevision, detail, object: object, keyPath: keyPath)
  }
}
