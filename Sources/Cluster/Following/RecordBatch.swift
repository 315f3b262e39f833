package import KeyValueModel
import KeywayServer
package import Store
import Support

/// Records that are sent to another node, exactly as the journal stores them, with their chain of digests.
///
/// Four bytes that name the format; the newest revision that the sender knows of (8 bytes), the milliseconds for which
/// it has had no news of newer ones (8), the digest of its revocations (8), the number of records (4); and for each
/// record its time (8), its digest (8), the length of its body (4) and the body. Numbers are little-endian. The
/// revisions follow the one in the request.
package struct RecordBatch: Hashable, Sendable {
  /// The newest revision that the sender knows of: its own, or one that was reported to it and has not arrived yet.
  package var newest: Revision
  /// The time for which the sender has been without contact, in milliseconds: 0 for a node that takes writes itself.
  package var silenceMilliseconds: UInt64
  /// The digest of the revocations that apply there.
  package var revocations: JournalDigest
  /// The records, in order.
  package var records: [JournalRecord]

  /// Creates a batch.
  package init(
    newest: Revision, silenceMilliseconds: UInt64, revocations: JournalDigest, records: [JournalRecord]
  ) {
    self.newest = newest
    self.silenceMilliseconds = silenceMilliseconds
    self.revocations = revocations
    self.records = records
  }

  private static let magic = Array("kwr1".utf8)
  /// The size of a record without its body, in bytes.
  private static let recordOverhead = 20
  /// The size of a batch without records, in bytes.
  static let emptyBytes = 32

  /// Encodes the batch, which follows a revision with this digest.
  package func encoded(after digest: JournalDigest) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(records.reduce(Self.emptyBytes) { $0 + $1.body.count + Self.recordOverhead })
    bytes += Self.magic
    for number in [newest, silenceMilliseconds, revocations.value] { bytes.append(littleEndian: number) }
    bytes.append(littleEndian: UInt32(records.count))
    var digest = digest
    for record in records {
      digest = digest.linked(to: record)
      bytes.append(littleEndian: record.milliseconds)
      bytes.append(littleEndian: digest.value)
      bytes.append(littleEndian: UInt32(record.body.count))
      bytes += record.body
    }
    return bytes
  }

  /// Decodes a batch that follows a revision with a digest. Throws a fault if the bytes are not a batch, or a record is
  /// not the one that was written.
  package init(_ bytes: [UInt8], after revision: Revision, _ digest: JournalDigest) throws(NodeFault) {
    let malformed = NodeFault("the answer is not a batch of records of this version")
    var rest = bytes[...]
    guard rest.take(Self.magic.count) == Self.magic[...], let newest = rest.takeInteger(Revision.self),
      let silenceMilliseconds = rest.takeInteger(UInt64.self), let revocations = rest.takeInteger(UInt64.self),
      let count = rest.takeInteger(UInt32.self)
    else { throw malformed }
    (self.newest, self.silenceMilliseconds) = (newest, silenceMilliseconds)
    self.revocations = JournalDigest(value: revocations)
    records = []
    var digest = digest
    for index in 0..<UInt64(count) {
      guard let milliseconds = rest.takeInteger(Int64.self), let link = rest.takeInteger(UInt64.self),
        let length = rest.takeInteger(UInt32.self), let body = rest.take(Int(length))
      else { throw malformed }
      let record = JournalRecord(revision: revision + index + 1, milliseconds: milliseconds, body: Array(body))
      digest = digest.linked(to: record)
      guard digest.value == link else { throw NodeFault("revision \(record.revision) is not what was written") }
      records.append(record)
    }
    guard rest.isEmpty else { throw malformed }
  }
}
