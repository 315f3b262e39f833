import KeyValueModel
import Support

/// Starts a store from the contents of its journal, or from its cache of a shared one.
struct StoreOpening {
  private let store: Store
  private let report: (RecoveryProgress) -> Void
  private let restore: ([StoredAttachment]) -> Void

  /// The maximum number of attempts to read a journal whose oldest records other nodes may remove in the meantime.
  private static let sharedAttempts = 5

  /// Creates the opening with the `report` and `restore` of `Store.recover`.
  init(
    _ store: Store, report: @escaping (RecoveryProgress) -> Void, restore: @escaping ([StoredAttachment]) -> Void
  ) {
    let condition = store.currentCondition
    self.store = store
    self.restore = restore
    self.report = { progress in
      condition.withLock { $0 = .recovering(progress) }
      report(progress)
    }
  }

  /// Starts serving from the journal. See `Store.recover`.
  func run(schemaText: String?) throws(StoreError) -> [String] {
    if let schemaText, StoreMigration.isDue(store.journal, to: schemaText) {
      guard store.shared == nil else {
        let reason = "it has another schema than this node; run 'keyway store migrate' to migrate it for all nodes"
        throw .journal(.unusable("the database: \(reason)"))
      }
      return try migrate(to: schemaText)
    }
    let cache = store.shared?.cache?.journal.flatMap { $0.bounds.last > 0 ? $0 : nil }
    guard cache != nil || store.journal.bounds.last > 0 else { return beginEmpty() }
    if let cache, let remarks = try begin(with: cache) { return remarks }
    return adopt(try read(store.journal, attempts: store.shared == nil ? 1 : Self.sharedAttempts))
  }

  private func beginEmpty() -> [String] {
    startKeeping()
    store.currentCondition.withLock { $0 = .serving }
    return []
  }

  /// Starts from a cache. Returns nil if the cache is damaged and was discarded: the shared journal still has the data.
  private func begin(with cache: SQLiteJournal) throws(StoreError) -> [String]? {
    do throws(StoreError) {
      return adopt(try read(cache, attempts: 1))
    } catch {
      switch error {
      case .replay, .storedSchema, .journal(.damaged):
        store.shared?.cache?.giveUp("\(error)")
        return nil
      case .journal, .schema: throw error
      }
    }
  }

  private func read(_ journal: any TransactionJournal, attempts: Int) throws(StoreError) -> Recovery.Outcome {
    try Recovery(journal, schema: store.schema, limits: store.limits, report: report, restore: restore).run(
      attempts: attempts)
  }

  /// Serves the state that was read. Returns remarks for the operator.
  private func adopt(_ outcome: Recovery.Outcome) -> [String] {
    store.adopt(outcome.model, outcome.history)
    startKeeping(recoveryBase: outcome.base)
    return outcome.remarks
  }

  /// Starts trimming the history by age, and maintaining the journal.
  private func startKeeping(recoveryBase: Revision = 0) {
    store.keeper.begin(recoveryBase: recoveryBase)
    store.keeper.lookLater(store)
    store.shared?.keepCache { [weak store] cache in
      guard let store else { return }
      let keeper = JournalKeeper(journal: cache, limits: store.limits) { [notify = store.notify] in
        notify($0.map { .cacheFailed($0) } ?? .cacheWritten)
      }
      keeper.begin()
      store.cacheKeeper.withLock { $0 = keeper }
    }
  }

  /// Rebases the journal to the store's schema.
  private func migrate(to text: String) throws(StoreError) -> [String] {
    guard store.journal.bounds.last > 0 else {
      // The store is empty, so there is nothing to convert, and no client that has seen anything.
      try StoreError.of { () throws(JournalError) in
        try store.journal.rebase(to: 0, schema: text, milliseconds: store.clock.now()) { nil }
      }
      return beginEmpty()
    }
    let migration = try StoreMigration(store.journal, to: store.schema, text: text, report: report)
    try migration.write(to: store.journal, milliseconds: store.clock.now())
    if !migration.kept.isEmpty { restore(migration.kept) }
    store.adopt(Model(state: migration.state, revision: migration.revision), History(limits: store.limits))
    startKeeping(recoveryBase: migration.revision)
    return migration.remarks
      + ["the schema differs from the store's; the objects were migrated in revision \(migration.revision)"]
      + migration.report.changes.map { "the schema has changed: \($0)" }
  }
}
