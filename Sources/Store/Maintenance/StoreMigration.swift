package import KeyValueModel

/// The objects of a store under another schema than the one with which they were written.
package struct StoreMigration {
  /// The objects under the new schema.
  package let state: ModelState
  /// The revision that the migration makes: one more than the last, so that every client that saw the earlier objects
  /// fetches all of them again.
  package let revision: Revision
  /// The changes that the migration makes.
  package let report: MigrationReport
  /// Remarks for the operator about snapshots that could not be read.
  package let remarks: [String]
  private let text: String
  /// The attachments stored with the commits, oldest first.
  let kept: [StoredAttachment]

  /// Returns true if a journal was written under another schema than `text`, apart from comments and layout.
  package static func isDue(_ journal: any TransactionJournal, to text: String) -> Bool {
    Schema.fingerprint(ofYAML: journal.identity.schema) != Schema.fingerprint(ofYAML: text)
  }

  /// Reads a journal under its own schema and converts its objects to another schema, whose text is `text`. Changes
  /// nothing in the journal. Throws `schema` with the obstacles.
  package init(
    _ journal: any TransactionJournal, to schema: Schema, text: String, steps: [MigrationStep] = [],
    report progress: @escaping (RecoveryProgress) -> Void = { _ in }
  ) throws(StoreError) {
    let stored = try Schema(stored: journal.identity)
    var kept: [StoredAttachment] = []
    let outcome = try Recovery(
      journal, schema: stored, limits: .withoutHistory, report: progress, restore: { kept += $0 }
    ).run()
    self.kept = kept
    let evolution = SchemaEvolution(from: stored, to: schema, steps: steps)
    revision = outcome.model.revision + 1
    remarks = outcome.remarks
    self.text = text
    do throws(MigrationRefusal) {
      let migration = try evolution.migrated(outcome.model.state, revision: revision)
      state = migration.state
      report = migration.report
    } catch {
      let rest = error.count - error.obstacles.count
      throw .schema(error.obstacles.map(\.description) + (rest > 0 ? ["and \(rest) more"] : []))
    }
  }

  /// Rebases the journal to the migrated objects. If this is interrupted, the journal is either the old one or the new
  /// one.
  package func write(to journal: any TransactionJournal, milliseconds: Int64) throws(StoreError) {
    try StoreError.of { () throws(JournalError) in
      var encoder = SnapshotEncoder(state, keeping: { kept })
      try journal.rebase(to: revision, schema: text, milliseconds: milliseconds) { encoder.nextBlock() }
    }
  }
}

/// Makes a store's files as small as possible while no server runs.
package struct StoreCompaction: Sendable {
  /// The revision after which the records now begin.
  package let base: Revision
  /// The last revision.
  package let last: Revision
  /// The number of objects at the last revision.
  package let objects: Int

  /// Writes a snapshot of the state with which the retained records begin, and removes the earlier records: with
  /// `keepsHistory` those that no resuming client needs by `limits`, otherwise all. `milliseconds` is the time since
  /// 1970.
  package static func run(
    _ journal: SQLiteJournal, keepsHistory: Bool, limits: StoreLimits, milliseconds: Int64
  ) throws(StoreError) -> StoreCompaction {
    let schema = try Schema(stored: journal.identity)
    var kept: [StoredAttachment] = []
    var outcome = try Recovery(journal, schema: schema, limits: limits, restore: { kept += $0 }).run()
    let last = outcome.model.revision
    let objects = outcome.model.state.count
    outcome.history.trim(at: milliseconds)
    let base = keepsHistory ? outcome.history.oldestResumable(at: last) : last
    if base > journal.bounds.base {
      let state: ModelState
      if base == last {
        state = outcome.model.state
      } else {
        state = try Recovery(journal, schema: schema, limits: .withoutHistory).run(through: base).model.state
      }
      try StoreError.of { () throws(JournalError) in
        var encoder = SnapshotEncoder(state, keeping: { kept.filter { $0.revision <= base } })
        try journal.writeSnapshot(at: base, milliseconds: milliseconds) { encoder.nextBlock() }
        try journal.compact(upTo: base)
      }
    }
    try StoreError.of { () throws(JournalError) in try journal.shrink() }
    return StoreCompaction(base: journal.bounds.base, last: last, objects: objects)
  }
}
