import Crypto
import Support

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
    value = hash.finalizePrefix()
  }
}
