/// The setting of one attribute of one object, where that is all that a commit did: the commonest of all commits, in
/// one piece of memory and without lists.
package final class PlainSetting: Sendable {
  /// The object.
  package let object: Reference
  /// The index of the attribute in its entity.
  package let key: Int
  /// True where the key's `notifies` kept it silent.
  package let isSilent: Bool
  /// The object as it was, and as it is.
  package let before, after: ObjectRecord
  let writer: String?

  init(
    _ object: Reference, key: Int, isSilent: Bool, before: ObjectRecord, after: ObjectRecord, writer: String?
  ) {
    (self.object, self.key, self.isSilent) = (object, key, isSilent)
    (self.before, self.after, self.writer) = (before, after, writer)
  }

  /// What a step did to an object that was `before`; nil where that is anything else.
  convenience init?(_ step: Commit.Step, _ before: ObjectRecord?, _ writer: String?) {
    guard let before, case .change(let changes) = step.kind, changes.count == 1, let change = changes.first,
      step.writes.count == 1, let after = step.writes[0].record, after.entity.isAttribute(change.key)
    else { return nil }
    self.init(
      change.object, key: change.key, isSilent: change.isSilent, before: before, after: after, writer: writer)
  }

  var change: Commit.KeyChange { Commit.KeyChange(object: object, key: key, isSilent: isSilent, collection: nil) }

  var step: Commit.Step { Commit.Step(kind: .change([change]), writes: [(object, after)]) }
}
