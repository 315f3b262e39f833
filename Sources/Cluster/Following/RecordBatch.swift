package import KeyValueModel
import KeywayServer
package import Store

/// Records on their way to another node, exactly as the journal keeps them, with the chain of digests that they make.
///
/// Four bytes that name the form; the newest revision that the sender knows of (8 bytes), for how many milliseconds
/// it has heard nothing of newer ones (8), the digest of its revocations (8), the number of records (4); and of each
/// record its time (8), its digest (8), the length of its body (4) and the body. Numbers are little-endian. Revisions
/// follow on the one that was asked for.
package struct RecordBatch: Hashable, Sendable {
  /// The newest revision that the sender knows of: its own, or one that it was told of and has not got yet.
  package var newest: Revision
  /// For how long the sender has heard nothing, in milliseconds: 0 of a node that takes writes itself.
  package var silenceMilliseconds: UInt64
  /// The digest of the revocations that count there.
  package var revocations: JournalDigest
  /// The records, in order.
  package var records: [JournalRecord]

  /// A batch of these parts.
  package init(
    newest: Revision, silenceMilliseconds: UInt64, revocations: JournalDigest, records: [JournalRecord]
  ) {
    self.newest = newest
    self.silenceMilliseconds = silenceMilliseconds
    self.revocations = revocations
    self.records = records
  }

  private static let magic = Array("kwr1".utf8)
  /// What a record takes besides its body.
  private static let recordOverhead = 20
  /// What a batch without records takes.
  static let emptyBytes = 32

  /// The bytes of the batch, behind a revision with this digest.
  package func encoded(after digest: JournalDigest) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(records.reduce(Self.emptyBytes) { $0 + $1.body.count + Self.recordOverhead })
    bytes += Self.magic
    bytes.append(number: newest)
    bytes.append(number: silenceMilliseconds)
    bytes.append(number: revocations.value)
    bytes.append(number: UInt32(records.count))
    var digest = digest
    for record in records {
      digest = digest.linked(to: record)
      bytes.append(number: UInt64(bitPattern: record.milliseconds))
      bytes.append(number: digest.value)
      bytes.append(number: UInt32(record.body.count))
      bytes += record.body
    }
    return bytes
  }

  /// The batch that bytes are, behind a revision with a digest. Throws a fault where they are not one, or a record is
  /// not what was written.
  package init(_ bytes: [UInt8], after revision: Revision, _ digest: JournalDigest) throws(NodeFault) {
    var reader = Reader(bytes: bytes)
    guard try reader.take(4) == Self.magic[...] else { throw Reader.strange }
    newest = try reader.number()
    silenceMilliseconds = try reader.number()
    revocations = JournalDigest(value: try reader.number())
    let count: UInt32 = try reader.number()
    records = []
    var digest = digest
    for index in 0..<UInt64(count) {
      let milliseconds: UInt64 = try reader.number()
      let link: UInt64 = try reader.number()
      let length: UInt32 = try reader.number()
      let record = JournalRecord(
        revision: revision + index + 1, milliseconds: Int64(bitPattern: milliseconds),
        body: Array(try reader.take(Int(length))))
      digest = digest.linked(to: record)
      guard digest.value == link else { throw NodeFault("revision \(record.revision) is not what was written") }
      records.append(record)
    }
    guard reader.isAtEnd else { throw Reader.strange }
  }

  private struct Reader {
    let bytes: [UInt8]
    var position = 0

    static var strange: NodeFault { NodeFault("the answer is no batch of records of this version") }

    var isAtEnd: Bool { position == bytes.count }

    mutating func take(_ count: Int) throws(NodeFault) -> ArraySlice<UInt8> {
      guard bytes.count - position >= count else { throw Self.strange }
      defer { position += count }
      return bytes[position..<position + count]
    }

    mutating func number<Number: FixedWidthInteger>() throws(NodeFault) -> Number {
      try take(Number.bitWidth / 8).reversed().reduce(0) { $0 << 8 | Number($1) }
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }
}
