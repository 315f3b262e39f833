import Crypto
package import HTTPServer
import KeyValueModel
import Support

/// The first half of the SHA-256 of some bytes: long enough that no collision is known, and short enough to be stored
/// with each of many entries.
struct HalfDigest: Hashable, Sendable {
  /// The length of the digest in bytes.
  static let byteCount = 16

  let high: UInt64
  let low: UInt64

  /// Creates the digest of bytes.
  init(of bytes: [UInt8]) {
    var hash = SHA256()
    hash.update(bytes)
    self.init(hash)
  }

  /// Creates the digest of the bytes that were hashed.
  init(_ hash: SHA256) {
    (high, low) = hash.finalize().withUnsafeBytes { bytes in
      (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
  }

  /// Reads a stored digest, or returns nil if there are more or fewer bytes than `byteCount`.
  init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    (high, low) = Array(bytes).withUnsafeBytes { bytes in
      (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
  }

  /// Appends the bytes of the digest.
  func append(to bytes: inout [UInt8]) {
    withUnsafeBytes(of: high) { bytes.append(contentsOf: $0) }
    withUnsafeBytes(of: low) { bytes.append(contentsOf: $0) }
  }
}

/// The digest of the `sub` of an identity, which stands for it where a client is counted or a key belongs to an
/// identity. It has the same length for every `sub`, and no collision is known.
package struct IdentityMark: Hashable, Sendable {
  /// The length of the mark in bytes.
  static let byteCount = HalfDigest.byteCount

  private let digest: HalfDigest

  /// Creates the mark of a `sub`.
  package init(of subject: String) { digest = HalfDigest(of: Array(subject.utf8)) }

  /// Reads a stored mark, or returns nil if there are more or fewer bytes than `byteCount`.
  init?(bytes: some Collection<UInt8>) {
    guard let digest = HalfDigest(bytes: bytes) else { return nil }
    self.digest = digest
  }

  /// Appends the bytes of the mark.
  func append(to bytes: inout [UInt8]) { digest.append(to: &bytes) }

  /// The client that the shares of this identity are counted for.
  package var client: ClientAddress { ClientAddress(digest: digest.high, digest.low) }
}

/// The digest of a viewer's claims that the read rules use, which is stored with a response that was made for the
/// viewer. Viewers with the same mark may read the same.
struct ViewerMark: Hashable, Sendable {
  /// The length of the mark in bytes.
  static let byteCount = HalfDigest.byteCount

  private let digest: HalfDigest

  /// Creates the mark of a viewer.
  init(of viewer: Viewer) {
    var bytes: [UInt8] = []
    // No claims differ from claims of which the rules use none.
    if let claims = viewer.claims { Value.object(claims).appendJSON(to: &bytes) }
    digest = HalfDigest(of: bytes)
  }

  /// Reads a stored mark, or returns nil if there are more or fewer bytes than `byteCount`.
  init?(bytes: some Collection<UInt8>) {
    guard let digest = HalfDigest(bytes: bytes) else { return nil }
    self.digest = digest
  }

  /// Appends the bytes of the mark.
  func append(to bytes: inout [UInt8]) { digest.append(to: &bytes) }
}
