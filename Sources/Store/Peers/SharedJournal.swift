/// A journal that several nodes append to. A call that fails because another node appended first throws
/// `unexpectedRevision`; the caller then reads the others' records and rebuilds what it wanted to append.
package protocol SharedJournal: TransactionJournal {
  /// Throws `unexpectedRevision` unless `revision` was the last revision at some time after this call began, so that
  /// what a node responds about its state is not out of date. Throws `refused` if this cannot be determined.
  func confirm(_ revision: UInt64) throws(JournalError)

  /// Reads the journal's last revision, so that `bounds` is up to date. Throws `refused` if this cannot be determined.
  func refresh() throws(JournalError)

  /// Waits until another node is known to have appended beyond a revision, or the time is over; this node's own appends
  /// do not end the wait. Throws `unusable` if the journal is closed, and `damaged` if it has ended for this node.
  func waitForOthers(beyond revision: UInt64, for time: Duration) throws(JournalError)

  /// The address of the node that appended last; empty if there is none.
  var pen: String { get }
  /// True if this node appended last.
  var hasPen: Bool { get }

  /// The number of changes to the revocations by any node, as far as this node knows.
  var revocationChanges: UInt64 { get }

  /// Returns the addresses of the nodes that have used the journal in the last 15 seconds. Throws `refused` if this
  /// cannot be determined.
  func nodes() throws(JournalError) -> [String]

  /// Makes this node report these nodes, which follow it, as present whenever it reports itself as present.
  func vouch(for nodes: [String])

  /// The time since the shared storage last responded.
  var silence: Duration { get }

  /// Returns the same as `records` if the records are among the newest ones and need no waiting; nil otherwise.
  func recentRecords(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]?

  /// The newest record that this node has appended, read or received from another node, with its digest; without one,
  /// the position at which the journal begins here.
  var newest: (revision: UInt64, digest: JournalDigest) { get }

  /// Returns the newest records after a revision for another node of the same epoch that has reached this revision with
  /// this digest, with at most `bytes` in their bodies. Returns nil if there are none, if they do not go back so far,
  /// if this node has another digest there, or if the journal has ended for this node.
  func handed(after revision: UInt64, _ digest: JournalDigest, bytes: Int) -> HandedRecords?

  /// Takes over records that another node has handed to this one, as if they had been read, without waking callers that
  /// wait for others. Returns false if the records do not follow on this node's last one, or if this node has all of
  /// them.
  func take(_ handed: HandedRecords) -> Bool

  /// Returns true if the journal does not exist in the shared storage. Throws `refused` if this cannot be determined.
  func isMissing() throws(JournalError) -> Bool

  /// Ends the journal for this node, unless it has already ended. Later calls throw `damaged`.
  func end(_ end: JournalEnd)

  /// Calls `action` once, from any thread, when the journal ends for this node, or if it has ended already.
  func whenOver(_ action: @escaping @Sendable (JournalEnd) -> Void)

  /// This node's cache of the journal for its next start; nil if it has none.
  var cache: JournalCache? { get }

  /// Makes the cache if there is none yet, and keeps it up to date until the journal is closed. Calls `whenMade` once
  /// the cache exists. Call it when the store has finished its initial reading.
  func keepCache(_ whenMade: @escaping @Sendable (SQLiteJournal) -> Void)
}

extension SharedJournal {
  /// Always nil.
  package var cache: JournalCache? { nil }
  /// Does nothing.
  package func keepCache(_ whenMade: @escaping @Sendable (SQLiteJournal) -> Void) {}
}

/// The time that a write may take if nodes share a journal, with the limits of its parts.
package enum WriteTime {
  /// The limit from the request to its response.
  package static let whole = Duration.seconds(5)
  /// The limit for forwarding to the node that appended last, before this node carries out the write itself.
  package static let forwarding = Duration.seconds(1)
  /// The time without a response after which the journal is considered unreachable; normally it responds at least once
  /// a second.
  package static let silence = Duration.seconds(3)
}

/// The reason why a journal shared by several nodes has ended for one of them.
package enum JournalEnd: Hashable, Sendable {
  /// The journal was replaced by another one, or the records that follow are gone: the node can restart with the
  /// current journal.
  case otherHistory(String)
  /// The journal continues under another schema, which this node does not have.
  case otherSchema(String)

  /// The reason as text, for the operator.
  package var reason: String {
    switch self {
    case .otherHistory(let reason), .otherSchema(let reason): reason
    }
  }
}

/// The newest records of a shared journal as one node hands them to another, which then need not read them from the
/// shared storage, where they already are. Includes the digest that they lead to.
package struct HandedRecords: Equatable, Sendable {
  /// At least one record, in consecutive order.
  package let records: [JournalRecord]
  /// The digest at the last record.
  package let digest: JournalDigest
  /// The address of the node that appended last, as far as the sender knows.
  package let pen: String

  /// Creates the records that lead to a digest; nil if there are none.
  package init?(_ records: [JournalRecord], digest: JournalDigest, pen: String) {
    guard !records.isEmpty else { return nil }
    (self.records, self.digest, self.pen) = (records, digest, pen)
  }

  /// Returns the records that follow on a position, each with its digest. Returns nil if none follows, if the next one
  /// is missing, or if they do not lead from the digest there to the expected one: they are then of a different
  /// history, or damaged.
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
