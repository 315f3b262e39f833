/// A journal that several nodes append to. Every call that fails because another was first throws
/// `unexpectedRevision`; then the others' records are read, and what was to be appended is made anew from there.
package protocol SharedJournal: TransactionJournal {
  /// Throws `unexpectedRevision` unless `revision` was the last one at some time after this was called: so what a node
  /// says of its state is said of one that is not old. Throws `refused` where that cannot be found out.
  func confirm(_ revision: UInt64) throws(JournalError)

  /// Asks how far the journal is, so that `bounds` says so. Throws `refused` where that cannot be found out.
  func refresh() throws(JournalError)

  /// Waits until another node is known to have appended beyond a revision, or the time is over; what this node appends
  /// itself wakes nobody here. Throws `unusable` where it is closed, `damaged` where it is over.
  func waitForOthers(beyond revision: UInt64, for time: Duration) throws(JournalError)

  /// The address of the node that appended last; empty where none has.
  var pen: String { get }
  /// Whether this node appended last.
  var hasPen: Bool { get }

  /// How often the revocations were changed by any node, as far as this one has heard.
  var revocationChanges: UInt64 { get }

  /// Where the nodes are reached that have used the journal in the last quarter of a minute. Throws `refused` where
  /// that cannot be found out.
  func nodes() throws(JournalError) -> [String]

  /// From now on this node says of these, which follow it, that they are there, whenever it says so of itself.
  func vouch(for nodes: [String])

  /// For how long nothing has been heard of where the journal is kept.
  var silence: Duration { get }

  /// What `records` gives, where it is among the newest records and nothing has to be waited for; nil otherwise.
  func recentRecords(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]?

  /// The newest record that this node has appended, read or been handed, with its digest; where there is none, the
  /// place that the journal begins with here.
  var newest: (revision: UInt64, digest: JournalDigest) { get }

  /// What another node of the same epoch lacks that has come as far as a revision with this digest: the newest records
  /// after it, with no more than `bytes` in their bodies. Nil where there are none, or not so old ones, where this node
  /// has another digest there, or the journal is over.
  func handed(after revision: UInt64, _ digest: JournalDigest, bytes: Int) -> HandedRecords?

  /// Takes over records that another node has handed to this one, as if they were read; those who wait for others are
  /// not woken. False where they are of no use: they do not follow on what this node has, or it has all of them.
  func take(_ handed: HandedRecords) -> Bool

  /// Whether there is no journal where it is kept. Throws `refused` where that cannot be found out.
  func isMissing() throws(JournalError) -> Bool

  /// From now on it is over for this node, unless it is already. What is called then throws `damaged`.
  func end(_ end: JournalEnd)

  /// Calls `action` once, from any thread, where the journal comes to be over for this node, or is.
  func whenOver(_ action: @escaping @Sendable (JournalEnd) -> Void)

  /// What this node keeps of it for its next start; nil where it keeps nothing.
  var cache: JournalCache? { get }

  /// From now on, until it is closed, the cache is made where there is none yet, and follows; once it is there,
  /// `whenMade` is called. To be called when the store has read what it begins with.
  func keepCache(_ whenMade: @escaping @Sendable (SQLiteJournal) -> Void)
}

extension SharedJournal {
  /// Nothing.
  package var cache: JournalCache? { nil }
  /// Does nothing.
  package func keepCache(_ whenMade: @escaping @Sendable (SQLiteJournal) -> Void) {}
}

/// The time that a write may take where nodes share a journal, in parts that do not come to more than the whole.
package enum WriteTime {
  /// From the request to its answer.
  package static let whole = Duration.seconds(5)
  /// With the node that appended last, before this one carries the write out itself.
  package static let forwarding = Duration.seconds(1)
  /// A journal answers at least once a second; one that has not for so long is taken to be out of reach.
  package static let silence = Duration.seconds(3)
}

/// Why a journal that several nodes share is over for one of them.
package enum JournalEnd: Hashable, Sendable {
  /// It is another one, or has forgotten what comes next: the node can begin anew with what it is now.
  case otherHistory(String)
  /// It has gone on under another schema, which this node does not have.
  case otherSchema(String)

  /// The reason in words, for the operator.
  package var reason: String {
    switch self {
    case .otherHistory(let reason), .otherSchema(let reason): reason
    }
  }
}

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
