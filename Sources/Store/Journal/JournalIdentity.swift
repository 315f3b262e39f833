/// What a journal says of itself.
package struct JournalIdentity: Hashable, Sendable, Codable {
  /// The random word that tells this store's cursors from those of any other.
  package let epoch: String
  /// The text of the schema under which its records were written.
  package let schema: String

  /// An identity of these parts.
  package init(epoch: String, schema: String) {
    self.epoch = epoch
    self.schema = schema
  }
}

/// How far a journal reaches.
package struct JournalBounds: Hashable, Sendable {
  /// The revision after which its records begin: 0 for one that was never compacted.
  package let base: UInt64
  /// The last revision that it holds; `base` where it has no record.
  package let last: UInt64

  /// Bounds of these ends.
  package init(base: UInt64, last: UInt64) {
    self.base = base
    self.last = last
  }
}
