/// What a journal says of itself.
public struct JournalIdentity: Hashable, Sendable, Codable {
  /// The random word that tells this store's cursors from those of any other.
  public let epoch: String
  /// The text of the schema under which its records were written.
  public let schema: String

  /// An identity of these parts.
  public init(epoch: String, schema: String) {
    self.epoch = epoch
    self.schema = schema
  }
}

/// How far a journal reaches.
public struct JournalBounds: Hashable, Sendable {
  /// The revision after which its records begin: 0 for one that was never compacted.
  public let base: UInt64
  /// The last revision that it holds; `base` where it has no record.
  public let last: UInt64

  /// Bounds of these ends.
  public init(base: UInt64, last: UInt64) {
    self.base = base
    self.last = last
  }
}
