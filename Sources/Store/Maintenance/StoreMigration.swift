package import KeyValueModel

/// The objects of a store under another schema than the one that they were written under.
package struct StoreMigration {
  /// The objects under the new schema.
  package let state: ModelState
  /// The revision that the migration makes: one more than the last one, so that every client that saw the objects as
  /// they were before gets all of them anew.
  package let revision: Revision
  /// What it does.
  package let report: MigrationReport
  /// Remarks for the operator: snapshots that could not be read.
  package let remarks: [String]
  private let text: String
  /// What was kept with the commits, oldest first.
  let kept: [StoredAttachment]

  /// Whether a journal was written under another schema than a text says, comments and layout apart.
  package static func isDue(_ journal: any TransactionJournal, to text: String) -> Bool {
    Schema.fingerprint(ofYAML: journal.identity.schema) != Schema.fingerprint(ofYAML: text)
  }

  /// Reads a journal under its own schema and takes its objects to another, whose text is `text`. Changes nothing in
  /// the journal. Throws `schema` with what stands in the way.
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

  /// Has the journal begin anew with the migrated objects. Whatever interrupts it, the journal is the old one or the
  /// new one.
  package func write(to journal: any TransactionJournal, milliseconds: Int64) throws(StoreError) {
    try StoreError.of { () throws(JournalError) in
      var encoder = SnapshotEncoder(state, keeping: { kept })
      try journal.rebase(to: revision, schema: text, milliseconds: milliseconds) { encoder.nextBlock() }
    }
  }
}

/// Makes a store's files as small as they can be, while no server runs.
package struct StoreCompaction: Sendable {
  /// Where the records begin now.
  package let base: Revision
  /// How far they reach.
  package let last: Revision
  /// The objects at the last revision.
  package let objects: Int

  /// Writes down the state with which the records that are kept begin, and has the journal forget what comes before:
  /// with `keepsHistory` what no resuming client needs by `limits`, otherwise everything. `milliseconds` is the time,
  /// since 1970.
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
