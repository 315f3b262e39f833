import Glibc
package import KeyValueModel

/// What the body of a record is: the transaction's text, which has no line break, and behind one, where there is one,
/// the attachment that was submitted with it.
extension JournalRecord {
  /// What most records take at most: one allocation does for their texts.
  private static var usualBytes: Int { 192 }

  /// The record of a commit.
  init(_ transaction: Transaction, revision: Revision, milliseconds: Int64, attachment: [UInt8]?) {
    var body: [UInt8] = []
    body.reserveCapacity(Self.usualBytes)
    transaction.appendJournalText(to: &body)
    if let attachment {
      body.append(UInt8(ascii: "\n"))
      body.append(contentsOf: attachment)
    }
    self.init(revision: revision, milliseconds: milliseconds, body: body)
  }

  /// The transaction that it is of.
  package func transaction() throws(StoredTextError) -> Transaction {
    try body.withUnsafeBufferPointer { buffer throws(StoredTextError) in
      try Transaction(journalText: UnsafeBufferPointer(rebasing: buffer[..<textLength]))
    }
  }

  /// What was kept with it; nil where nothing was.
  package var attachment: [UInt8]? {
    let length = textLength
    return length < body.count ? Array(body[(length + 1)...]) : nil
  }

  private var textLength: Int {
    body.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress, let found = memchr(start, Int32(UInt8(ascii: "\n")), bytes.count) else {
        return bytes.count
      }
      return UnsafeRawPointer(found) - start
    }
  }
}
