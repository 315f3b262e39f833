/// What is known of a journal without asking it: what it is, and how far it came, with the digests of both ends.
package struct JournalPosition: Hashable, Sendable {
  /// What it is.
  package let identity: JournalIdentity
  /// How far it reaches.
  package let bounds: JournalBounds
  /// The digest at the revision after which the records begin.
  package let baseDigest: JournalDigest
  /// The digest at the last revision.
  package let digest: JournalDigest
}

extension TransactionJournal {
  /// Where it stands. Throws `damaged` where the digests are not there.
  package func position() throws(JournalError) -> JournalPosition {
    let bounds = bounds
    guard let baseDigest = try digest(at: bounds.base), let digest = try digest(at: bounds.last) else {
      throw .damaged(place: directory ?? "the journal", reason: "a digest of its ends is missing")
    }
    return JournalPosition(identity: identity, bounds: bounds, baseDigest: baseDigest, digest: digest)
  }
}
