import Foundation
import Journal
import KeyValueModel
import Locking
import Synchronization

/// A store over a journal that other nodes append to as well.
extension Store {
  /// What is read of the others' records at a time.
  private static let chunkRecords = 1_024
  private static let chunkBytes = 4 << 20
  /// For how long a look for what others appended may wait, in seconds.
  private static let lookSeconds = 1
  /// Between two looks where the journal does not answer.
  private static let pauseSeconds = 0.2

  /// Where other nodes append to the journal, takes over what they append, on a thread of its own, until the journal is
  /// closed. To be called after `recover`. `restore` is told what they kept with their commits, before these are
  /// published; it must not call the store.
  package func follow(restore: @escaping @Sendable ([StoredAttachment]) -> Void) {
    guard let shared else { return }
    restoring.withLock { $0 = restore }
    Thread.detachNewThread { [weak self] in
      while true {
        // Without a hold on the store, which may be done with meanwhile.
        guard let revision = self?.revision else { return }
        do throws(JournalError) {
          _ = try shared.records(after: revision, limit: 1, bytes: 1, waiting: .seconds(Self.lookSeconds))
          try self?.followOn(shared)
        } catch .unusable {
          return
        } catch {
          Thread.sleep(forTimeInterval: Self.pauseSeconds)
        }
      }
    }
  }

  /// Takes over what others have appended, if there is anything.
  private func followOn(_ shared: any SharedJournal) throws(JournalError) {
    // What this node has appended itself is published by then.
    writer.sync {}
    guard shared.bounds.last > revision else { return }
    let outcome = writer.sync { () -> Result<Void, JournalError> in
      writing.withLock { writing in Result { () throws(JournalError) in try catchUp(&writing) } }
    }
    try outcome.get()
  }

  /// Whether an error of the journal says that others have appended, and what they appended was taken over.
  func isOvertaken(_ error: JournalError, _ writing: inout Writing) -> Bool {
    guard shared != nil, case .unexpectedRevision = error else { return false }
    return (try? catchUp(&writing)) != nil
  }

  /// On the writer: takes over what the journal has beyond what is published.
  private func catchUp(_ writing: inout Writing) throws(JournalError) {
    let restore = restoring.withLock { $0 }
    while true {
      let records = try journal.records(
        after: writing.model.revision, limit: Self.chunkRecords, bytes: Self.chunkBytes, waiting: .zero)
      guard !records.isEmpty else { return }
      do throws(StoreError) {
        var entries: [(JournalRecord, Transaction)] = []
        for record in records { entries.append((record, try record.decoded())) }
        try carryOut(entries, .shared, &writing) { attachments in restore?(attachments) }
      } catch {
        // Another program than this one wrote it, or it is damaged.
        let damage = JournalError.damaged(place: "the journal", reason: "\(error)")
        becomeUnavailable(damage)
        throw damage
      }
    }
  }

  /// How often a batch of this node was judged anew because another node had appended first.
  package var overtakenBatches: Int { overtaken.load(ordering: .relaxed) }

  /// Whether this node is to do what one node has to do for all.
  var isCaretaker: Bool { shared?.hasPen ?? true }
}
