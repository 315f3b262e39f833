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
  public private(set) var values: [Value]
  /// About how many bytes the values have as JSON: kept, so that a change does not look at them all.
  package private(set) var textBytes: Int
  /// What ends the object by itself; nil where nothing does.
  package internal(set) var lease: Lease?

  /// An object as it stood. `values` has one for each stored key, in the order of `Key.storage`.
  package init(entity: Entity, revision: Revision, createdAt: Revision, values: [Value], lease: Lease? = nil) {
    self.entity = entity
    self.revision = revision
    self.createdAt = createdAt
    self.values = values
    self.lease = lease
    textBytes = values.reduce(0) { $0 + $1.textBytes }
  }

  /// Sets the value of a stored key, which makes the object larger by `growth` bytes of JSON, or smaller.
  mutating func set(_ value: Value, at storage: Int, growth: Int) {
    values[storage] = value
    textBytes += growth
  }

  /// The same for a value that may be looked at as a whole, as the one before it.
  mutating func set(_ value: Value, at storage: Int) {
    set(value, at: storage, growth: value.textBytes - values[storage].textBytes)
  }
}
