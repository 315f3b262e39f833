import Foundation
import KeyValueModel
import Support

/// Takes over the records that other nodes append to a store's journal.
struct PeerRecords {
  let store: Store

  /// The limits of the records read at a time.
  private static let chunkRecords = 1_024
  private static let chunkBytes = 4 << 20
  /// The maximum time of one wait for records of others, in seconds.
  private static let lookSeconds = 1
  /// The pause after an attempt for which the journal did not respond, in seconds.
  private static let pauseSeconds = 0.2

  /// Takes over the records of others on a thread of its own, until the journal is closed.
  static func follow(_ shared: any SharedJournal, _ store: Store) {
    Thread.detachNewThread { [weak store] in
      while true {
        // Holds no reference to the store while waiting, since the store may be released in the meantime.
        guard let revision = store?.revision else { return }
        do throws(JournalError) {
          try shared.waitForOthers(beyond: revision, for: .seconds(Self.lookSeconds))
          if let store { try PeerRecords(store: store).followOn(shared) }
        } catch .unusable {
          return
        } catch .compacted {
          shared.end(.otherHistory("the journal no longer has the records after revision \(revision)"))
          Thread.sleep(forTimeInterval: Self.pauseSeconds)
        } catch {
          Thread.sleep(forTimeInterval: Self.pauseSeconds)
        }
      }
    }
  }

  /// Takes over the records that others have appended, if any.
  private func followOn(_ shared: any SharedJournal) throws(JournalError) {
    // Waits until the records that this node appended itself are published.
    store.writer.sync {}
    guard shared.bounds.last > store.revision else { return }
    try onWriter { writing throws(JournalError) in try catchUp(&writing) }
  }

  /// Takes over the records that another node has handed to the journal, without reading any others.
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

  /// Takes over the journal's records beyond the published ones. Called on the writer.
  func catchUp(_ writing: inout Store.Writing) throws(JournalError) {
    try catchUp(&writing) { revision throws(JournalError) in
      try store.journal.records(
        after: revision, limit: Self.chunkRecords, bytes: Self.chunkBytes, waiting: .zero)
    }
  }

  /// Takes over the records that `read` returns, until it returns none.
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
        // Another program wrote the record, or it is damaged.
        let damage = JournalError.damaged(place: "the journal", reason: "\(error)")
        store.becomeUnavailable(damage)
        throw damage
      }
    }
  }
}
