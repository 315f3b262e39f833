import Dispatch
import KeyValueModel
import Support

extension Store {
  /// Where the records of another node's commits are to be found after they were taken over.
  package enum RecordPlace: Hashable, Sendable {
    /// They are appended to this store's journal, as they are.
    case appended
    /// They stand in this store's journal already, because the other node writes to the same one.
    case shared
  }

  /// Takes over commits of another node, which has them on its disk: carries them out as a recovery does, with the time
  /// that they were made at, writes the same bytes down, and publishes them as its own commits are. So state, history,
  /// events, digests and what was kept with them are the other node's. `records` follow on one another and on the
  /// store's revision; what the store has already is passed over. `restore` is told, before anything is published, what
  /// was kept with them; it must not call the store.
  ///
  /// Returns when they are published. Throws `replay` where one cannot be carried out or does not follow, and `journal`
  /// where they cannot be written down: then none of them was taken over. Any thread but the writer's; not together
  /// with writes of this node's own, unless the journal is shared.
  package func take(
    _ records: [JournalRecord], _ place: RecordPlace = .appended,
    restore: ([StoredAttachment]) -> Void = { _ in }
  ) throws(StoreError) {
    var transactions: [Transaction] = []
    transactions.reserveCapacity(records.count)
    for record in records { transactions.append(try record.decoded()) }
    let entries = Array(zip(records, transactions))
    let outcome = writer.sync { () -> Result<Void, StoreError> in
      Result { () throws(StoreError) in try self.carryOut(entries, place, restore) }
    }
    // Once those who wait for the commits have them.
    writer.async { self.journal.maintain() }
    try outcome.get()
  }

  private func carryOut(
    _ entries: [(JournalRecord, Transaction)], _ place: RecordPlace, _ restore: ([StoredAttachment]) -> Void
  ) throws(StoreError) {
    if case .recovering = condition { throw .journal(.unusable("the store has not read its journal yet")) }
    try writing.withLock { writing throws(StoreError) in try carryOut(entries, place, &writing, restore) }
  }

  /// On the writer: carries them out, writes them down where they are to be, and publishes them.
  func carryOut(
    _ entries: [(JournalRecord, Transaction)], _ place: RecordPlace, _ writing: inout Writing,
    _ restore: ([StoredAttachment]) -> Void
  ) throws(StoreError) {
    let base = writing.model.revision
    let new = entries.drop { $0.0.revision <= base }
    guard !new.isEmpty else { return }
    var commits: [Commit] = []
    do throws(StoreError) {
      for (record, transaction) in new { commits.append(try record.carryOut(transaction, &writing.model)) }
    } catch {
      undo(&writing)
      throw error
    }
    let records = new.map(\.0)
    let bytes = records.reduce(0) { $0 + $1.body.count }
    if place == .appended {
      do throws(JournalError) {
        try append(records, after: base, &writing)
      } catch {
        undo(&writing)
        writing.refusedBytes = bytes
        becomeUnavailable(error)
        throw .journal(error)
      }
    }
    becomeAvailable()
    if let last = records.last { clock.advance(to: last.milliseconds) }
    leases.note(commits)
    let attachments = records.compactMap { record in
      record.attachment.map {
        StoredAttachment(revision: record.revision, milliseconds: record.milliseconds, bytes: $0)
      }
    }
    if !attachments.isEmpty { restore(attachments) }
    publish(commits, at: records.map(\.milliseconds), writing.model.state, writing.model.revision)
    noteWritten(records: records.count, bytes: bytes)
  }

  /// Tells those who keep the journal short that records were published.
  func noteWritten(records: Int, bytes: Int) {
    keeper.note(records: records, bytes: bytes, of: self)
    if shared != nil { cacheKeeper.withLock { $0 }?.note(records: records, bytes: bytes, of: self) }
  }

  /// Goes back to what is published: no reader has seen anything else.
  func undo(_ writing: inout Writing) {
    let snapshot = self.snapshot
    writing.model = Model(state: snapshot.state, revision: snapshot.revision)
    writing.growth.undo()
  }
}

extension JournalRecord {
  /// The transaction that it is of. Throws `replay` where it is none.
  func decoded() throws(StoreError) -> Transaction {
    do throws(StoredTextError) {
      return try transaction()
    } catch {
      throw .replay(revision: revision, reason: "\(error)")
    }
  }

  /// Carries out its transaction. Throws `replay` where it does not follow, or is refused.
  func carryOut(_ transaction: Transaction, _ model: inout Model) throws(StoreError) -> Commit {
    try model.follow(revision) { model throws(ModelError) in try model.commit(transaction, at: milliseconds) }
  }
}

extension Model {
  /// Runs what makes a revision. Throws `replay` where that does not follow on the last one, or is refused.
  mutating func follow<Result>(
    _ revision: Revision, _ body: (inout Model) throws(ModelError) -> Result
  ) throws(StoreError) -> Result {
    guard revision == self.revision + 1 else {
      throw .replay(revision: revision, reason: "it does not follow on revision \(self.revision)")
    }
    do throws(ModelError) {
      return try body(&self)
    } catch {
      throw .replay(revision: revision, reason: error.detail)
    }
  }
}
