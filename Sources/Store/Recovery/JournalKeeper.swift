import Dispatch
import Glibc
package import KeyValueModel
import Support

/// Keeps a journal short: writes snapshots from time to time, and removes the records that neither a start nor a
/// resuming client needs.
///
/// The work is done on one serial queue. Only `account` changes, under its lock, which is not held together with any
/// other.
final class JournalKeeper: Sendable {
  private struct Account {
    /// The revision after which the attachments of commits were reported to `restore`.
    var recoveryBase: Revision = 0
    /// The number and the size of the records appended since the last snapshot.
    var records = 0
    var bytes = 0
    var isScheduled = false
    /// The revision of the newest snapshot.
    var snapshot: Revision = 0
    /// True if records are kept only because others need them.
    var isHeldBack = false
    var failure: String?
  }

  private let journal: any TransactionJournal
  /// The journal, if other nodes maintain it too; nil otherwise.
  private let shared: (any SharedJournal)?
  private let limits: StoreLimits
  private let notify: @Sendable (String?) -> Void
  private let account = Locked(Account())
  /// The records that others need; nil if there are no others.
  private let need = Locked<JournalNeed?>(nil)
  private let queue = DispatchQueue(label: "keyway.journal.keeper", qos: .utility)

  /// The maximum time for which a state waits for its records.
  private static let patience = Duration.seconds(10)

  /// Creates a keeper of a journal. `notify` is called with the reason when the state can no longer be written, and
  /// with nil when it can be written again.
  init(journal: any TransactionJournal, limits: StoreLimits, notify: @escaping @Sendable (String?) -> Void) {
    self.journal = journal
    shared = journal as? any SharedJournal
    self.limits = limits
    self.notify = notify
  }

  /// The reason why the last snapshot could not be written; nil if it was written.
  var failure: String? { account.withLock { $0.failure } }

  /// The revision after which the attachments of commits were reported to `restore`.
  var recoveryBase: Revision { account.withLock { $0.recoveryBase } }

  /// The revision of the newest snapshot; 0 if there is none.
  var snapshotRevision: Revision { account.withLock { $0.snapshot } }

  /// Restricts what the journal removes to the revisions that `need` allows.
  func restrictRemoval(to need: @escaping JournalNeed) { self.need.withLock { $0 = need } }

  /// Initializes the account from the journal. The attachments of the commits after `recoveryBase` were reported to
  /// `restore`.
  func begin(recoveryBase: Revision = 0) {
    let bounds = journal.bounds
    let snapshot = (try? journal.snapshots().first?.revision) ?? bounds.base
    account.withLock { account in
      account.snapshot = snapshot
      account.recoveryBase = recoveryBase
      account.records = Int(bounds.last - min(snapshot, bounds.last))
    }
  }

  /// True if this node does the work that one node does for all.
  private var isCaretaker: Bool { shared?.hasPen ?? true }

  /// Trims the history and checks the journal every second, as long as the store exists.
  func lookLater(_ store: Store) {
    queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak store, weak self] in
      guard let store, let self else { return }
      store.trimHistory()
      store.watchJournal()
      forgetRest(store)
      lookLater(store)
    }
  }

  /// Counts appended records, and schedules a snapshot if one is due. Called on the writer.
  func note(records: Int, bytes: Int, of store: Store) {
    let isCaretaker = isCaretaker
    let isDue = account.withLock { account -> Bool in
      account.records += records
      account.bytes += bytes
      guard isCaretaker else { return false }
      guard account.records >= limits.snapshotRevisions || account.bytes >= limits.snapshotBytes else { return false }
      defer { account.isScheduled = true }
      return !account.isScheduled
    }
    if isDue { queue.async { [weak store] in store.map(self.snapshotAndCompact) } }
  }

  /// Writes a snapshot of the published state and removes the records from before the history.
  private func snapshotAndCompact(_ store: Store) {
    let snapshot = store.snapshot
    let counted = account.withLock { ($0.records, $0.bytes) }
    do throws(JournalError) {
      if try adoptSnapshot(store) { return }
      // A cache gets the published records a little later.
      if journal.bounds.last < snapshot.revision {
        _ = try journal.records(after: snapshot.revision - 1, limit: 1, bytes: 1, waiting: Self.patience)
      }
      if !journal.isVolatile {
        var encoder = SnapshotEncoder(snapshot.state) {
          Self.awaitConclusions(of: store, at: snapshot.revision)
          return store.attachments(upTo: snapshot.revision)
        }
        try journal.writeSnapshot(at: snapshot.revision, milliseconds: store.clock.now()) { encoder.nextBlock() }
      }
      try forget(snapshot)
      account.withLock { account in
        account.records -= counted.0
        account.bytes -= counted.1
        account.snapshot = snapshot.revision
        account.isScheduled = false
      }
      noteFailure(nil)
    } catch {
      // The journal is unchanged, only longer. The next attempt is made after as many records have been appended again.
      account.withLock { account in
        account.records = 0
        account.bytes = 0
        account.isScheduled = false
      }
      noteFailure(error)
    }
  }

  /// Waits until the submitters of the last commits up to a revision have been notified, and know their attachments:
  /// that is the case when there is another commit, or after a moment.
  private static func awaitConclusions(of store: Store, at revision: Revision) {
    let deadline = ContinuousClock.now + .milliseconds(200)
    while store.revision == revision, .now < deadline { usleep(5_000) }
  }

  /// Adopts a snapshot that another node has written since the last check. Returns true if there is one: this node then
  /// need not write its own.
  private func adoptSnapshot(_ store: Store) throws(JournalError) -> Bool {
    guard shared != nil, let newest = try journal.snapshots().first?.revision,
      newest > account.withLock({ $0.snapshot })
    else { return false }
    account.withLock { account in
      let revision = store.revision
      // The size of the records after it is unknown; it is estimated from their share of the records.
      let rest = Int(clamping: revision - min(newest, revision))
      account.bytes = account.records > 0 ? Int(Double(account.bytes) * Double(rest) / Double(account.records)) : 0
      account.records = rest
      account.snapshot = newest
      account.isScheduled = false
    }
    return true
  }

  private func noteFailure(_ error: JournalError?) {
    let reason = error.map(journal.publicReason)
    let isChange = account.withLock { account in
      defer { account.failure = reason }
      return (account.failure == nil) != (reason == nil)
    }
    if isChange { notify(error?.description) }
  }

  /// Removes the records that neither this store nor others need.
  private func forget(_ snapshot: Snapshot) throws(JournalError) {
    let oldest = snapshot.oldestResumable
    let needed = need.withLock { $0 }?(oldest, snapshot.writtenBytes) ?? oldest
    account.withLock { $0.isHeldBack = needed < oldest }
    try compact(upTo: min(needed, oldest))
  }

  /// Removes the records that others needed until now.
  private func forgetRest(_ store: Store) {
    guard account.withLock({ $0.isHeldBack }), isCaretaker else { return }
    do throws(JournalError) { try forget(store.snapshot) } catch { noteFailure(error) }
  }

  /// Removes the records that neither a start nor a resuming client needs: a start has to rebuild the history, so it
  /// begins with a snapshot from before it.
  private func compact(upTo oldest: Revision) throws(JournalError) {
    if journal.isVolatile { return try journal.compact(upTo: oldest) }
    guard let base = try journal.snapshots().first(where: { $0.revision <= oldest })?.revision else { return }
    try journal.compact(upTo: base)
  }
}

/// Returns the revision up to which a journal may remove its records, for the sake of others that read them. `oldest`
/// is the revision up to which its own store does not need them, `writtenBytes` the bytes that the store has written
/// since its start. Called on a thread of the store; must not call the store.
package typealias JournalNeed = @Sendable (_ oldest: Revision, _ writtenBytes: Int) -> Revision
