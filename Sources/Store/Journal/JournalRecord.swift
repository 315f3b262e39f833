import Crypto
package import KeyValueModel
import Support

/// One committed transaction in the form that a journal stores.
package struct JournalRecord: Hashable, Sendable {
  /// The revision that the transaction made: one more than that of the record before it.
  package let revision: UInt64
  /// The time of the commit, in milliseconds since 1970-01-01T00:00:00Z, by the writer's clock.
  package let milliseconds: Int64
  /// The encoded transaction, in whatever form the writer chooses; the journal does not interpret it.
  package let body: [UInt8]

  /// Creates a record.
  package init(revision: UInt64, milliseconds: Int64, body: [UInt8]) {
    self.revision = revision
    self.milliseconds = milliseconds
    self.body = body
  }

  /// Throws `invalid` unless the records follow on `expected` and on one another, and there is at least one.
  package static func check(_ records: [JournalRecord], follow expected: UInt64) throws(JournalError) {
    guard !records.isEmpty else { throw .invalid("at least one record must be appended") }
    for (offset, record) in records.enumerated() where record.revision != expected + 1 + UInt64(offset) {
      throw .invalid("a record has revision \(record.revision) instead of \(expected + 1 + UInt64(offset))")
    }
  }

  // MARK: The body

  // The transaction's text, which has no line break, optionally followed by a line break and the attachment that was
  // submitted with the transaction.

  /// The size in bytes that most records do not exceed, so that one allocation suffices for their text.
  private static var usualBytes: Int { 192 }

  /// Creates the record of a commit.
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

  /// Returns the transaction of this record.
  package func transaction() throws(StoredTextError) -> Transaction {
    try body.withUnsafeBufferPointer { buffer throws(StoredTextError) in
      try Transaction(journalText: UnsafeBufferPointer(rebasing: buffer[..<textLength]))
    }
  }

  /// The attachment that was stored with the transaction; nil if there is none.
  package var attachment: [UInt8]? {
    let length = textLength
    return length < body.count ? Array(body[(length + 1)...]) : nil
  }

  private var textLength: Int {
    body.withUnsafeBytes { $0.offset(of: UInt8(ascii: "\n")) ?? $0.count }
  }

  // MARK: Carrying out

  /// Returns the transaction of this record. Throws `replay` if the body is not a valid transaction.
  func decoded() throws(StoreError) -> Transaction {
    do throws(StoredTextError) {
      return try transaction()
    } catch {
      throw .replay(revision: revision, reason: "\(error)")
    }
  }

  /// Applies the record's transaction to the model. Throws `replay` if it does not follow on the model's revision or is
  /// refused.
  func carryOut(_ transaction: Transaction, _ model: inout Model) throws(StoreError) -> Commit {
    try model.follow(revision) { model throws(ModelError) in try model.commit(transaction, at: milliseconds) }
  }
}

extension Model {
  /// Runs `body`, which makes a revision. Throws `replay` if the revision does not follow on the last one or is
  /// refused.
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

/// A link in a chain of digests that represents everything up to its place, in order. Two journals with the same digest
/// at a revision have the same records up to there.
package struct JournalDigest: Hashable, Sendable, Codable {
  /// The first eight bytes of SHA-256 (FIPS 180-4), as a little-endian number.
  package let value: UInt64

  /// Creates a digest from its stored value.
  package init(value: UInt64) {
    self.value = value
  }

  /// The beginning of every chain.
  package static let start = JournalDigest(value: 0)

  /// Returns the beginning of the chain of a journal that is rebased to a revision under a schema.
  package static func rebased(to revision: UInt64, schema: String) -> JournalDigest {
    JournalDigest(value: revision).linked(to: Array(schema.utf8))
  }

  /// Returns the next link: the digest of this one and some bytes.
  package func linked(to bytes: [UInt8]) -> JournalDigest {
    var hash = SHA256()
    hash.update(value)
    hash.update(bytes)
    return JournalDigest(hash)
  }

  /// Returns the next link for a record: the digest of this one and the record's revision, time and body.
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

/// The attachment stored with a commit: after a restart it exists if and only if the commit does.
package struct StoredAttachment: Hashable, Sendable {
  /// The commit's revision.
  package let revision: Revision
  /// The time of the commit, in milliseconds since 1970.
  package let milliseconds: Int64
  /// The content of the attachment.
  package let bytes: [UInt8]

  /// Creates the attachment of the commit of `revision`, made at `milliseconds` since 1970.
  package init(revision: Revision, milliseconds: Int64, bytes: [UInt8]) {
    (self.revision, self.milliseconds, self.bytes) = (revision, milliseconds, bytes)
  }
}
