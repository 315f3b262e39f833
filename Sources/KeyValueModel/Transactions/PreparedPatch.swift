/// What a JSON patch makes of an object as it stood at a revision. It holds as long as the object has not been written
/// since.
struct PreparedPatch: Sendable {
  private let revision: Revision
  private let createdAt: Revision
  let result: Result<ObjectPatch, ModelError>

  /// Applies a patch to an object of a state; nil where there is no such object, and where the patch names what comes
  /// from other objects: the whole document, or a computed key.
  init?(
    _ patch: JSONPatch, of reference: Reference, in state: borrowing ModelState, _ limits: TransactionLimits
  ) {
    guard let record = state.record(reference), let names = patch.namedMembers else { return nil }
    let isOwn = names.allSatisfy { name in
      record.entity.indexOfKey(name).map { record.entity.keys[$0].storage != nil } ?? true
    }
    guard isOwn else { return nil }
    revision = record.revision
    createdAt = record.createdAt
    do throws(ModelError) {
      var patched = try ObjectPatch(patch, of: reference, record, in: state, budget: TransactionBudget(limits))
      try patched.check(by: state.schema, reference, record)
      result = .success(patched)
    } catch {
      result = .failure(error)
    }
  }

  /// Whether this is still the object that the patch was applied to.
  func holds(for record: ObjectRecord) -> Bool { record.revision == revision && record.createdAt == createdAt }
}
