/// What a repair has done.
package struct JournalRepair: Hashable, Sendable {
  /// What the journal is now.
  package let identity: JournalIdentity
  /// How far it reaches now.
  package let bounds: JournalBounds
  /// The last revision that was found before, whole or not, acknowledged or not.
  package let previousLast: UInt64
  /// The epoch before, where it is another now: something that a client may have seen was given up.
  package let previousEpoch: String?
  /// Where the records began before, where they begin later now.
  package let previousBase: UInt64?
  /// What the files that were replaced or are of no use are called now.
  package let movedAside: [String]
}
