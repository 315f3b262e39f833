/// One committed transaction as a journal keeps it.
public struct JournalRecord: Hashable, Sendable {
  /// The revision that it made: one more than the record before it.
  public let revision: UInt64
  /// When it was committed, in milliseconds since 1970-01-01T00:00:00Z, by the clock of whoever wrote it.
  public let milliseconds: Int64
  /// What it did, in whatever form the writer keeps it; the journal does not look into it.
  public let body: [UInt8]

  /// A record of these parts.
  public init(revision: UInt64, milliseconds: Int64, body: [UInt8]) {
    self.revision = revision
    self.milliseconds = milliseconds
    self.body = body
  }
}
