import HTTPServer
import Journal
import KeyValueModel
import ModelStore

/// The events of streams that follow the journal.
extension EventEncoder {
  /// A `transaction` event.
  func appendTransaction(_ record: JournalRecord, to bytes: inout [UInt8]) throws(JournalError) {
    var text: [UInt8] = []
    try record.appendFeedText(to: &text)
    append("transaction", id: record.revision, to: &bytes) { $0.append(contentsOf: text) }
  }

  /// The same, to be posted.
  func event(of record: JournalRecord) throws(JournalError) -> EventBytes {
    var bytes: [UInt8] = []
    try appendTransaction(record, to: &bytes)
    return EventBytes(bytes, position: StreamPosition.commit(record.revision).rawValue)
  }

  /// A `reset` and the cursor from which the stream goes on.
  func reset(_ reason: Resumption.Reset, at revision: Revision, position: UInt64) -> EventBytes {
    var bytes: [UInt8] = []
    appendReset(reason, revision: revision, to: &bytes)
    appendHeartbeat(at: revision, to: &bytes)
    return EventBytes(bytes, position: position)
  }
}

extension JournalRecord {
  /// Appends the transaction as a JSON object; throws `damaged` where the record is none.
  func appendFeedText(to bytes: inout [UInt8]) throws(JournalError) {
    do throws(StoredTextError) {
      let transaction = try self.transaction()
      transaction.appendFeedText(revision: revision, milliseconds: milliseconds, to: &bytes)
    } catch {
      throw .damaged(place: "revision \(revision) of the journal", reason: "\(error)")
    }
  }
}

extension TransactionJournal {
  /// The records after a revision and up to another, as `records(after:limit:bytes:waiting:)` gives them: what is
  /// written down and not yet published is left out.
  func records(
    after revision: Revision, through last: Revision, limit: Int, bytes: Int
  ) throws(JournalError) -> ArraySlice<JournalRecord> {
    guard revision < last else { return [] }
    return try records(after: revision, limit: limit, bytes: bytes, waiting: .zero).prefix { $0.revision <= last }
  }
}
