import Crypto
import Glibc
package import KeyValueModel
import Support

/// One committed transaction as a journal keeps it.
package struct JournalRecord: Hashable, Sendable {
  /// The revision that it made: one more than the record before it.
  package let revision: UInt64
  /// When it was committed, in milliseconds since 1970-01-01T00:00:00Z, by the writer's clock.
  package let milliseconds: Int64
  /// What it did, in whatever form the writer keeps it; the journal does not look into it.
  package let body: [UInt8]

  /// A record of these parts.
  package init(revision: UInt64, milliseconds: Int64, body: [UInt8]) {
    self.revision = revision
    self.milliseconds = milliseconds
    self.body = body
  }

  /// Throws `invalid` unless the records follow on one another and on a revision, and there is at least one.
  package static func check(_ records: [JournalRecord], follow expected: UInt64) throws(JournalError) {
    guard !records.isEmpty else { throw .invalid("there is nothing to append") }
    for (offset, record) in records.enumerated() where record.revision != expected + 1 + UInt64(offset) {
      throw .invalid("a record of revision \(record.revision) where \(expected + 1 + UInt64(offset)) is due")
    }
  }

  // MARK: The body

  // The transaction's text, which has no line break, and behind one, where there is one, the attachment that was
  // submitted with it.

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

  // MARK: Carrying out

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

/// A link of a chain of digests: it stands for everything up to where it was made, in order. Two journals with the same
/// digest at a revision have the same records up to there.
package struct JournalDigest: Hashable, Sendable, Codable {
  /// The first eight bytes of SHA-256 (FIPS 180-4), as a little-endian number.
  package let value: UInt64

  /// A digest that was written down.
  package init(value: UInt64) {
    self.value = value
  }

  /// The beginning of every chain.
  package static let start = JournalDigest(value: 0)

  /// The beginning of the chain of a journal that begins anew at a revision under a schema.
  package static func rebased(to revision: UInt64, schema: String) -> JournalDigest {
    JournalDigest(value: revision).linked(to: Array(schema.utf8))
  }

  /// The next link: the digest of this one and some bytes.
  package func linked(to bytes: [UInt8]) -> JournalDigest {
    var hash = SHA256()
    hash.update(value)
    hash.update(bytes)
    return JournalDigest(hash)
  }

  /// The next link for a record: its revision, time and body.
  package func linked(to record: JournalRecord) -> JournalDigest {
    var hash = SHA256()
    hash.update(value)
    hash.update(record.revision)
    hash.update(UInt64(bitPattern: record.milliseconds))
    hash.update(record.body)
    return JournalDigest(hash)
  }

  private init(_ hash: SHA256) {
    value = hash.finalize().withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
  }
}

/// What was submitted to be kept with a commit: after a restart it is there exactly where the commit is.
package struct StoredAttachment: Hashable, Sendable {
  /// The commit's revision.
  package let revision: Revision
  /// When the commit was made, in milliseconds since 1970.
  package let milliseconds: Int64
  /// What was kept.
  package let bytes: [UInt8]

  /// What was kept with the commit of a revision, made at a time in milliseconds since 1970.
  package init(revision: Revision, milliseconds: Int64, bytes: [UInt8]) {
    (self.revision, self.milliseconds, self.bytes) = (revision, milliseconds, bytes)
  }
}
