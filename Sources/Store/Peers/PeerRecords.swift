import Foundation
import KeyValueModel
import Support

/// What other nodes append to a store's journal, and how the store takes it over.
struct PeerRecords {
  let store: Store

  /// What is read of the others' records at a time.
  private static let chunkRecords = 1_024
  private static let chunkBytes = 4 << 20
  /// For how long a look for what others appended may wait, in seconds.
  private static let lookSeconds = 1
  /// Between two looks where the journal does not answer.
  private static let pauseSeconds = 0.2

  /// Takes it over on a thread of its own, until the journal is closed.
  static func follow(_ shared: any SharedJournal, _ store: Store) {
    Thread.detachNewThread { [weak store] in
      while true {
        // Without a hold on the store, which may be done with meanwhile.
        guard let revision = store?.revision else { return }
        do throws(JournalError) {
          try shared.waitForOthers(beyond: revision, for: .seconds(Self.lookSeconds))
          if let store { try PeerRecords(store: store).followOn(shared) }
        } catch .unusable {
          return
        } catch .compacted {
          shared.end(.otherHistory("the journal has forgotten what comes after revision \(revision)"))
          Thread.sleep(forTimeInterval: Self.pauseSeconds)
        } catch {
          Thread.sleep(forTimeInterval: Self.pauseSeconds)
        }
      }
    }
  }

  /// Takes over what others have appended, if there is anything.
  private func followOn(_ shared: any SharedJournal) throws(JournalError) {
    // What this node has appended itself is published by then.
    store.writer.sync {}
    guard shared.bounds.last > store.revision else { return }
    try onWriter { writing throws(JournalError) in try catchUp(&writing) }
  }

  /// Takes over what another node has handed to the journal, and asks for nothing beyond.
  func takeOver(from shared: any SharedJournal) throws(JournalError) {
    try onWriter { writing throws(JournalError) in
      try catchUp(&writing) { revision in
        shared.recentRecords(after: revision, limit: Self.chunkRecords, bytes: Self.chunkBytes) ?? []
      }
    }
  }

  private func onWriter(
    _ body: (inout Store.Writing) throws(JournalError) -> Void
  ) throws(JournalError) {
    let outcome = store.writer.sync { () -> Result<Void, JournalError> in
      store.writing.withLock { writing in Result { () throws(JournalError) in try body(&writing) } }
    }
    try outcome.get()
  }

  /// On the writer: takes over what the journal has beyond what is published.
  func catchUp(_ writing: inout Store.Writing) throws(JournalError) {
    try catchUp(&writing) { revision throws(JournalError) in
      try store.journal.records(
        after: revision, limit: Self.chunkRecords, bytes: Self.chunkBytes, waiting: .zero)
    }
  }

  /// The same with what `read` gives, until that is nothing.
  private func catchUp(
    _ writing: inout Store.Writing, _ read: (Revision) throws(JournalError) -> [JournalRecord]
  ) throws(JournalError) {
    let restore = store.restoring.withLock { $0 }
    while true {
      let records = try read(writing.model.revision)
      guard !records.isEmpty else { return }
      do throws(StoreError) {
        var entries: [(JournalRecord, Transaction)] = []
        for record in records { entries.append((record, try record.decoded())) }
        try store.carryOut(entries, .shared, &writing) { attachments in restore?(attachments) }
      } catch {
        // Another program than this one wrote it, or it is damaged.
        let damage = JournalError.damaged(place: "the journal", reason: "\(error)")
        store.becomeUnavailable(damage)
        throw damage
      }
    }
  }
}
