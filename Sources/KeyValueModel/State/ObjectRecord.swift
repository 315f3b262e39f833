/// The number of a committed transaction: 0 for the empty store, one more for each.
public typealias Revision = UInt64

/// One object as it stands at some revision.
public struct ObjectRecord: Sendable {
  /// What kind of object it is.
  public let entity: Entity
  /// The last revision that set a stored key.
  public internal(set) var revision: Revision
  /// The revision that made the object.
  public let createdAt: Revision
  /// The values of the stored keys, by `Key.storage`.
  public internal(set) var values: [Value]

  /// An object as it stood. `values` has one for each stored key, in the order of `Key.storage`.
  package init(entity: Entity, revision: Revision, createdAt: Revision, values: [Value]) {
    self.entity = entity
    self.revision = revision
    self.createdAt = createdAt
    self.values = values
  }
}
