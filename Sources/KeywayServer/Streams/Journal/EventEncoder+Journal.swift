import HTTPServer
import KeyValueModel
import Store

/// The events of streams that follow the journal.
extension EventEncoder {
  /// A `transaction` event.
  func appendTransaction(_ record: JournalRecord, to text: inout EventText) throws(JournalError) {
    var data: [UInt8] = []
    try record.appendFeedText(to: &data)
    append("transaction", id: record.revision, to: &text) { $0.append(data) }
  }

  /// The same, to be posted.
  func event(of record: JournalRecord) throws(JournalError) -> EventBytes {
    // A transaction has its own bound, and cannot be told in parts.
    var text = text(limit: .max)
    try appendTransaction(record, to: &text)
    return text.event(at: .commit(record.revision)) ?? EventBytes([])
  }

  /// A `reset` and the cursor from which the stream goes on.
  func reset(_ reason: Resumption.Reset, at revision: Revision, position: UInt64) -> EventBytes {
    posted(at: StreamPosition(rawValue: position)) { text in
      appendReset(reason, revision: revision, to: &text)
      appendHeartbeat(at: revision, to: &text)
    }
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
