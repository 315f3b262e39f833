import Dispatch
import Glibc
package import KeyValueModel
import Support

/// Keeps a journal short: writes the state down from time to time, and has the journal forget what neither a start nor
/// a resuming client needs.
///
/// The work is done on one serial queue, and `account` is all that changes, under its lock, which is held with no
/// other.
final class JournalKeeper: Sendable {
  private struct Account {
    /// What was kept with the commits after this revision was told.
    var toldAfter: Revision = 0
    /// What was appended since the last snapshot.
    var records = 0
    var bytes = 0
    var isScheduled = false
    /// The newest snapshot.
    var snapshot: Revision = 0
    /// Whether something is kept only because others need it.
    var isHeldBack = false
    var failure: String?
  }

  private let journal: any TransactionJournal
  /// The journal, where other nodes look after it too.
  private let shared: (any SharedJournal)?
  private let limits: StoreLimits
  private let notify: @Sendable (String?) -> Void
  private let account = Locked(Account())
  /// What others need; nil where there are none.
  private let need = Locked<JournalNeed?>(nil)
  private let queue = DispatchQueue(label: "keyway.journal.keeper", qos: .utility)

  /// For how long a state waits for its records.
  private static let patience = Duration.seconds(10)

  /// A keeper of a journal; `notify` is told when the state cannot be written down any more, and why, and gets nil when
  /// it can again.
  init(journal: any TransactionJournal, limits: StoreLimits, notify: @escaping @Sendable (String?) -> Void) {
    self.journal = journal
    shared = journal as? any SharedJournal
    self.limits = limits
    self.notify = notify
  }

  /// Why the last snapshot could not be written; nil where all is well.
  var failure: String? { account.withLock { $0.failure } }

  /// The revision after which what was kept with commits was told.
  var toldAfter: Revision { account.withLock { $0.toldAfter } }

  /// The newest snapshot; 0 where there is none.
  var snapshotRevision: Revision { account.withLock { $0.snapshot } }

  /// From now on the journal forgets no more than `need` says.
  func keep(_ need: @escaping JournalNeed) { self.need.withLock { $0 = need } }

  /// Begins with what the journal has. What was kept with the commits after `toldAfter` was told.
  func begin(toldAfter: Revision = 0) {
    let bounds = journal.bounds
    let snapshot = (try? journal.snapshots().first?.revision) ?? bounds.base
    account.withLock { account in
      account.snapshot = snapshot
      account.toldAfter = toldAfter
      account.records = Int(bounds.last - min(snapshot, bounds.last))
    }
  }

  /// Whether this node is to do what one node has to do for all.
  private var isCaretaker: Bool { shared?.hasPen ?? true }

  /// Trims the history and looks after the journal every second, for as long as there is a store.
  func lookLater(_ store: Store) {
    queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak store, weak self] in
      guard let store, let self else { return }
      store.trimHistory()
      store.watchJournal()
      forgetRest(store)
      lookLater(store)
    }
  }

  /// Records were appended. Called on the writer.
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
    if isDue { queue.async { [weak store] in store.map(self.keep) } }
  }

  /// Writes the published state down and has the journal forget what came before the history.
  private func keep(_ store: Store) {
    let snapshot = store.snapshot
    let counted = account.withLock { ($0.records, $0.bytes) }
    do throws(JournalError) {
      if try adoptSnapshot(store) { return }
      // A cache has what is published a little later.
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
      // The journal is as it was, only longer. Not tried again before as much has come once more.
      account.withLock { account in
        account.records = 0
        account.bytes = 0
        account.isScheduled = false
      }
      noteFailure(error)
    }
  }

  /// Waits until those who submitted the last commits up to a revision have been told, and know what they keep: by then
  /// there is another commit, or a moment has passed.
  private static func awaitConclusions(of store: Store, at revision: Revision) {
    let deadline = ContinuousClock.now + .milliseconds(200)
    while store.revision == revision, .now < deadline { usleep(5_000) }
  }

  /// Whether another node has written the state down since this one has looked: then that is not due here.
  private func adoptSnapshot(_ store: Store) throws(JournalError) -> Bool {
    guard shared != nil, let newest = try journal.snapshots().first?.revision,
      newest > account.withLock({ $0.snapshot })
    else { return false }
    let revision = store.revision
    account.withLock { account in
      // The bytes of what came after it are not known; they are taken for a part like that of the records.
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

  /// Forgets what neither this store nor others need.
  private func forget(_ snapshot: Snapshot) throws(JournalError) {
    let oldest = snapshot.oldestResumable
    let needed = need.withLock { $0 }?(oldest, snapshot.writtenBytes) ?? oldest
    account.withLock { $0.isHeldBack = needed < oldest }
    try compact(upTo: min(needed, oldest))
  }

  /// Forgets what others needed until now.
  private func forgetRest(_ store: Store) {
    guard account.withLock({ $0.isHeldBack }), isCaretaker else { return }
    do throws(JournalError) { try forget(store.snapshot) } catch { noteFailure(error) }
  }

  /// Forgets what neither a start nor a resuming client needs: a start has to make the history again, so it begins with
  /// a snapshot from before it.
  private func compact(upTo oldest: Revision) throws(JournalError) {
    if journal.isVolatile { return try journal.compact(upTo: oldest) }
    guard let base = try journal.snapshots().first(where: { $0.revision <= oldest })?.revision else { return }
    try journal.compact(upTo: base)
  }
}

/// Up to which revision a journal may forget its records, for the sake of others that read them: asked with the
/// revision up to which its own store does not need them, and the bytes that the store has written since its start.
/// Called on a thread of the store's own; must not call the store.
package typealias JournalNeed = @Sendable (_ oldest: Revision, _ writtenBytes: Int) -> Revision
