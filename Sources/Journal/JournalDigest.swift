internal import Crypto

/// A link of a chain of digests: it stands for everything up to where it was made, in order. Two journals with the same
/// digest at a revision have the same records up to there.
public struct JournalDigest: Hashable, Sendable, Codable {
  /// The first eight bytes of SHA-256 (FIPS 180-4), as a little-endian number.
  public let value: UInt64

  /// A digest that was written down.
  public init(value: UInt64) {
    self.value = value
  }

  /// The beginning of every chain.
  public static let start = JournalDigest(value: 0)

  /// The next link: the digest of this one and some bytes.
  public func linked(to bytes: [UInt8]) -> JournalDigest {
    var hash = SHA256()
    hash.update(value)
    bytes.withUnsafeBytes { hash.update(bufferPointer: $0) }
    return JournalDigest(hash)
  }

  /// The next link for a record: its revision, time and body.
  public func linked(to record: JournalRecord) -> JournalDigest {
    var hash = SHA256()
    hash.update(value)
    hash.update(record.revision)
    hash.update(UInt64(bitPattern: record.milliseconds))
    record.body.withUnsafeBytes { hash.update(bufferPointer: $0) }
    return JournalDigest(hash)
  }

  private init(_ hash: SHA256) {
    value = hash.finalize().withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
  }
}

extension SHA256 {
  fileprivate mutating func update(_ number: UInt64) {
    withUnsafeBytes(of: number.littleEndian) { update(bufferPointer: $0) }
  }
}
