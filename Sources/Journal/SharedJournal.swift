/// A journal that several nodes append to. Every call that fails because another was first throws
/// `unexpectedRevision`; then the others' records are read, and what was to be appended is made anew from there.
package protocol SharedJournal: TransactionJournal {
  /// Throws `unexpectedRevision` unless `revision` was the last one at some time after this was called: so what a node
  /// says of its state is said of one that is not old. Throws `refused` where that cannot be found out.
  func confirm(_ revision: UInt64) throws(JournalError)

  /// Asks how far the journal is, so that `bounds` says so. Throws `refused` where that cannot be found out.
  func refresh() throws(JournalError)

  /// The address of the node that appended last; empty where none has.
  var pen: String { get }
  /// Whether this node appended last.
  var hasPen: Bool { get }

  /// How often the revocations were changed by any node, as far as this one has heard.
  var revocationChanges: UInt64 { get }

  /// Where the nodes are reached that have used the journal in the last quarter of a minute. Throws `refused` where
  /// that cannot be found out.
  func nodes() throws(JournalError) -> [String]

  /// For how long nothing has been heard of where the journal is kept.
  var silence: Duration { get }
}
