/// The problem that a refused writer gets, and the rules that decide what it may say.
extension WriteInquiry {
  /// Asks about a transaction that is refused, of which `operations` are the first ones, whether it may make and change
  /// what it would.
  mutating func ask(
    afterFailureOf operations: some Collection<Operation>, _ preparations: [Preparation], in model: Model,
    _ limits: TransactionLimits
  ) throws(ModelError) {
    var refused = RefusedTransaction(in: model, limits, for: viewer)
    for (index, operation) in operations.enumerated() {
      // Also what is there already.
      for reference in operation.creations { noteCreation(of: reference, index) }
      do throws(ModelError) {
        try ask(operation, index, former: model.state, present: refused.present, in: model.schema)
        refused.apply(operation, index < preparations.count ? preparations[index] : .none, asking: self)
        guard refused.isWithinBudget else { break }
        try ask(about: refused.farChanges, by: operation, index, former: model.state, in: model.schema)
      } catch {
        // What else is wrong with an operation comes after the conditions.
        guard error.code == .forbidden else { continue }
        var located = error
        located.operation = index
        throw located
      }
    }
    try ask(ofObjectsAfter: model.state, refused.present)
  }

  // MARK: Refusals

  /// Returns what the model refuses without what it says of other objects.
  static func guarded(_ error: ModelError) -> ModelError {
    guard error.code == .deleteDenied else { return error }
    var guarded = ModelError(.deleteDenied, "something that refers to it forbids that it is deleted")
    (guarded.object, guarded.operation) = (error.object, error.operation)
    return guarded
  }

  static func forbidden(_ action: String, _ reference: Reference, _ cause: Cause) -> ModelError {
    guard cause.shown != reference else { return forbidden(action, reference, cause.operation) }
    var error = ModelError(
      .forbidden, "no rule lets you change the other side of a relationship as this would", object: cause.shown)
    error.operation = cause.operation
    return error
  }

  static func forbiddenLifetime(of reference: Reference, _ operation: Int? = nil) -> ModelError {
    var error = ModelError(
      .forbidden, "a lifetime needs 'delete', and no rule lets you delete \(reference)", object: reference)
    error.operation = operation
    return error
  }

  static func forbidden(_ action: String, _ reference: Reference, _ operation: Int? = nil) -> ModelError {
    var error = ModelError(.forbidden, "no rule lets you \(action) \(reference)", object: reference)
    error.operation = operation
    return error
  }

  /// The refusal to set a key.
  static func forbidden(_ key: Int, of entity: Entity, _ reference: Reference) -> ModelError {
    let name = entity.keys[key].name
    return ModelError(.forbidden, "no rule lets you set '\(name)'", object: reference, keyPath: name)
  }
}

extension Operation {
  /// The objects that the operation makes, whatever is there.
  fileprivate var creations: [Reference] {
    switch self {
    case .create(let reference, _): [reference]
    case .insert(_, _, let members, _), .replace(_, _, _, let members), .mutateSet(_, _, _, let members):
      members.compactMap { if case .object(let reference, _) = $0 { reference } else { nil } }
    default: []
    }
  }
}
