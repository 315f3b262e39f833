import Dispatch
package import KeyValueModel
import Support

extension Store {
  /// Reads the journal, once, before the first write; then the store serves. Gives remarks for the operator. Throws
  /// what stands in the way; then the store is of no use.
  ///
  /// `schemaText` is the text of the store's schema. Where the journal was written under one that says something else,
  /// its objects are taken to this one, in a revision of its own; what cannot go on is told by `StoreError.schema`, and
  /// nothing has changed. Without a text, the journal's is taken to be this one. `restore` gets what was kept with the
  /// commits that are carried out again, which are those that can be resumed and more, oldest first, some at a time,
  /// before the first write; where the journal is shared, also what other nodes keep with theirs from then on, before
  /// these are published. It must not call the store.
  package func recover(
    schemaText: String? = nil, report: @escaping (RecoveryProgress) -> Void = { _ in },
    restore: @escaping @Sendable ([StoredAttachment]) -> Void = { _ in }
  ) throws(StoreError) -> [String] {
    // Writes are taken as soon as it serves, and may be overtaken before this node follows.
    if shared != nil { restoring.withLock { $0 = KeptAction(restore) } }
    return try StoreOpening(self, report: report, restore: restore).run(schemaText: schemaText)
  }

  /// What was kept with commits was told to `restore`, or is, of all commits after this revision.
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
