/// The last revision of what a value was read from, which grows as the value is worked out.
///
/// What is named by a key path is an object along it, and counts with all its keys. What a computed key reads counts
/// with those keys that computed keys read of other objects; the object that is asked for is counted by who asks.
struct LatestRevision: Sendable {
  /// The revision; 0 as long as nothing was read.
  private(set) var revision: Revision
  /// Whether what is read is read for a computed key.
  let isForComputedKey: Bool

  /// For the objects along a key path.
  init(_ revision: Revision = 0) {
    self.init(revision, isForComputedKey: false)
  }

  private init(_ revision: Revision, isForComputedKey: Bool) {
    self.revision = revision
    self.isForComputedKey = isForComputedKey
  }

  /// For a computed key.
  static func ofComputedKey(_ revision: Revision = 0) -> LatestRevision {
    LatestRevision(revision, isForComputedKey: true)
  }

  /// An object was read.
  mutating func note(_ record: ObjectRecord) {
    revision = max(revision, isForComputedKey ? record.farRevision : record.revision)
  }

  /// What was worked out before was read from objects of that revision.
  mutating func note(_ revision: Revision) { self.revision = max(self.revision, revision) }

  /// Nothing read yet, for the same purpose.
  var anew: LatestRevision { LatestRevision(0, isForComputedKey: isForComputedKey) }
}
