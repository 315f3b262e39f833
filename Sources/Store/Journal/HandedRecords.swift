/// The newest records of a shared journal, as one node hands them to another, which then need not ask for them where
/// the journal is kept: what they are, and the digest that they lead to. They are there already.
package struct HandedRecords: Equatable, Sendable {
  /// One after the other, and at least one.
  package let records: [JournalRecord]
  /// The digest at the last of them.
  package let digest: JournalDigest
  /// The address of the node that appended last, as far as the one has heard that hands them over.
  package let pen: String

  /// Records that lead to a digest; nil where there are none.
  package init?(_ records: [JournalRecord], digest: JournalDigest, pen: String) {
    guard !records.isEmpty else { return nil }
    (self.records, self.digest, self.pen) = (records, digest, pen)
  }

  /// Those that follow on a position, each with its digest. Nil where none does, where the next one is missing, or
  /// where they do not lead from the digest there to the one that was named: then they are of another history, or
  /// damaged.
  package func following(
    on revision: UInt64, _ digest: JournalDigest
  ) -> [(record: JournalRecord, digest: JournalDigest)]? {
    var entries: [(record: JournalRecord, digest: JournalDigest)] = []
    var (last, link) = (revision, digest)
    for record in records where record.revision > revision {
      guard record.revision == last + 1 else { return nil }
      (last, link) = (record.revision, link.linked(to: record))
      entries.append((record, link))
    }
    return !entries.isEmpty && link == self.digest ? entries : nil
  }
}
