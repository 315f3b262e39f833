/// What was found out about an operation before the single writer has it: what depends on the schema and the operation
/// alone, and what a patch makes of its object as it stood then. The writer need not do it again.
enum Preparation: Sendable {
  /// Nothing: everything is for the writer.
  case none
  /// Each value is one that its attribute takes.
  case checked
  /// A value is none that its attribute takes.
  case refused(ModelError)
  /// What a JSON patch makes of its object.
  case patched(PreparedPatch)
}

extension Transaction {
  /// Does what can be done before the writer has the transaction, on the thread that calls: checks the values of
  /// attributes, writes the text for the journal, and applies JSON patches to the objects as they stand in `state`.
  /// Where the writer finds an object changed, it applies the patch again. O(n) in what is written; worth it where that
  /// is much.
  package mutating func prepare(in state: borrowing ModelState, limits: TransactionLimits) {
    var preparations: [Preparation] = []
    for operation in operations { preparations.append(Self.preparation(of: operation, in: state, limits)) }
    self.preparations = preparations
    var text: [UInt8] = []
    appendJournalText(to: &text)
    journalText = text
  }

  private static func preparation(
    of operation: Operation, in state: borrowing ModelState, _ limits: TransactionLimits
  ) -> Preparation {
    guard let entity = state.schema.entity(of: operation.reference) else { return .none }
    let reference = operation.reference
    var check = ValueCheck(schema: state.schema)
    switch operation {
    case .create(_, let body), .put(_, let body): check.look(at: body, of: entity, reference)
    case .patch(_, let body): check.look(at: body, of: entity, reference, isMerged: true)
    case .set(_, let keyPath, let value):
      guard let key = check.key(keyPath, from: entity) else { return .none }
      check.look(at: value, for: key, of: reference, keyPath)
    case .insert(_, let keyPath, let members, _), .replace(_, let keyPath, _, let members),
      .mutateSet(_, let keyPath, _, let members):
      guard let key = check.key(keyPath, from: entity), case .toMany(let toMany) = key.kind else { return .none }
      check.look(at: members, of: toMany, key, owner: keyPath == key.name ? reference : nil)
    case .jsonPatch(_, let patch):
      return PreparedPatch(patch, of: reference, in: state, limits).map(Preparation.patched) ?? .none
    case .removeIndexes, .removeMembers, .delete, .willChange, .didChange, .require, .lifetime:
      return .none
    }
    return check.outcome
  }
}
