/// What a repair has done.
public struct JournalRepair: Hashable, Sendable {
  /// What the journal is now.
  public let identity: JournalIdentity
  /// How far it reaches now.
  public let bounds: JournalBounds
  /// The last revision that was found before, whole or not, acknowledged or not.
  public let previousLast: UInt64
  /// The epoch before, where it is another now: something that somebody may have seen was given up.
  public let previousEpoch: String?
  /// Where the records began before, where they begin later now.
  public let previousBase: UInt64?
  /// What the files that were replaced or are of no use are called now.
  public let movedAside: [String]
}
