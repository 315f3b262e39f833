/// One committed transaction as a journal keeps it.
package struct JournalRecord: Hashable, Sendable {
  /// The revision that it made: one more than the record before it.
  package let revision: UInt64
  /// When it was committed, in milliseconds since 1970-01-01T00:00:00Z, by the writer's clock.
  package let milliseconds: Int64
  /// What it did, in whatever form the writer keeps it; the journal does not look into it.
  package let body: [UInt8]

  /// A record of these parts.
  package init(revision: UInt64, milliseconds: Int64, body: [UInt8]) {
    self.revision = revision
    self.milliseconds = milliseconds
    self.body = body
  }
}
