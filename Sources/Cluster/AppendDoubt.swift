import Store

/// An append whose outcome is not known: the same one, asked for again, is known by its number, so that it is not taken
/// for an equal one of another node.
struct AppendDoubt: Sendable {
  let expected: UInt64
  /// What the digest at its last record would be.
  let digest: JournalDigest
  let batch: Int64
}
