import Dispatch
import Journal
package import KeyValueModel
import Locking

extension Store {
  /// Reads the journal, once, before the first write; then the store serves. Gives remarks for the operator. Throws
  /// what stands in the way; then the store is of no use.
  ///
  /// `schemaText` is the text of the store's schema. Where the journal was written under one that says something else,
  /// its objects are taken to this one, in a revision of its own; what cannot go on is told by `StoreError.schema`, and
  /// nothing has changed. Without a text, the journal's is taken to be this one. `restore` gets what was kept with the
  /// commits that are carried out again, which are those that can be resumed and more, oldest first, some at a time,
  /// before the first write.
  package func recover(
    schemaText: String? = nil, report: @escaping (RecoveryProgress) -> Void = { _ in },
    restore: @escaping ([StoredAttachment]) -> Void = { _ in }
  ) throws(StoreError) -> [String] {
    if let schemaText, StoreMigration.isDue(journal, to: schemaText) {
      guard shared == nil else {
        let reason = "it has another schema than this node; keyway store migrate takes it to one, for all nodes"
        throw .journal(.unusable("the database: \(reason)"))
      }
      return try migrate(to: schemaText, report)
    }
    guard journal.bounds.last > 0 else {
      keeper.start(self)
      currentCondition.withLock { $0 = .serving }
      return []
    }
    let currentCondition = currentCondition
    let recovery = Recovery(
      journal, schema: schema, limits: limits,
      report: { progress in
        currentCondition.withLock { $0 = .recovering(progress) }
        report(progress)
      }, restore: restore)
    let outcome = try recovery.run(attempts: shared == nil ? 1 : 5)
    adopt(outcome.model, outcome.history)
    keeper.start(self, toldAfter: outcome.base)
    return outcome.remarks
  }

  /// Has the journal begin anew under the store's schema.
  private func migrate(
    to text: String, _ report: @escaping (RecoveryProgress) -> Void
  ) throws(StoreError) -> [String] {
    guard journal.bounds.last > 0 else {
      // There is nothing that could not go on, and no client that has seen anything.
      try StoreError.of { () throws(JournalError) in
        try journal.rebase(to: 0, schema: text, milliseconds: now()) { nil }
      }
      keeper.start(self)
      currentCondition.withLock { $0 = .serving }
      return []
    }
    let currentCondition = currentCondition
    let migration = try StoreMigration(journal, to: schema, text: text) { progress in
      currentCondition.withLock { $0 = .recovering(progress) }
      report(progress)
    }
    try migration.write(to: journal, milliseconds: now())
    adopt(Model(state: migration.state, revision: migration.revision), History(limits: limits))
    keeper.start(self, toldAfter: migration.revision)
    return migration.remarks
      + ["the schema is another than the store's; its objects go on under it with revision \(migration.revision)"]
      + migration.report.changes.map { "the schema has changed: \($0)" }
  }

  /// What was kept with commits was told to `restore`, or is told to `follow`, of all commits after this revision.
  package var toldAfter: Revision { keeper.toldAfter }

  /// The revision of the newest snapshot; 0 where there is none.
  package var snapshotRevision: Revision { keeper.snapshotRevision }

  /// From now on the journal forgets no more than `need` says.
  package func keepRecords(_ need: @escaping JournalNeed) { keeper.keep(need) }

  /// Why the last snapshot could not be written; nil where all is well.
  package var snapshotFailure: String? { keeper.failure }

  /// Ends the use of the journal, once the last write has been answered.
  package func close() {
    writer.sync { journal.close() }
  }
}
