import Crypto
package import HTTPServer
import KeyValueModel
import Support

/// The first half of the SHA-256 of some bytes: enough that no two with one digest are known, and short enough to be
/// kept with each of many.
struct HalfDigest: Hashable, Sendable {
  /// How many bytes it has.
  static let byteCount = 16

  let high: UInt64
  let low: UInt64

  /// The digest of bytes.
  init(of bytes: [UInt8]) {
    var hash = SHA256()
    hash.update(bytes)
    self.init(hash)
  }

  /// The digest of what was hashed.
  init(_ hash: SHA256) {
    (high, low) = hash.finalize().withUnsafeBytes { bytes in
      (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
  }

  /// A digest that was written down; nil where there are more or fewer bytes.
  init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    (high, low) = Array(bytes).withUnsafeBytes { bytes in
      (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
  }

  /// Adds its bytes to others.
  func append(to bytes: inout [UInt8]) {
    withUnsafeBytes(of: high) { bytes.append(contentsOf: $0) }
    withUnsafeBytes(of: low) { bytes.append(contentsOf: $0) }
  }
}

/// What stands for the `sub` of an identity where a client is counted or a key belongs to one: a digest of its bytes,
/// of the same length for every `sub`, and of which no two with one digest are known.
package struct IdentityMark: Hashable, Sendable {
  /// How many bytes it has.
  static let byteCount = HalfDigest.byteCount

  private let digest: HalfDigest

  /// The mark of a `sub`.
  package init(of subject: String) { digest = HalfDigest(of: Array(subject.utf8)) }

  /// A mark that was written down; nil where there are more or fewer bytes.
  init?(bytes: some Collection<UInt8>) {
    guard let digest = HalfDigest(bytes: bytes) else { return nil }
    self.digest = digest
  }

  /// Adds its bytes to others.
  func append(to bytes: inout [UInt8]) { digest.append(to: &bytes) }

  /// The client that has the shares of this identity.
  package var client: ClientAddress { ClientAddress(digest: digest.high, digest.low) }
}

/// What stands for a viewer where an answer is kept that was made for it: a digest of the claims that the read rules
/// use. Those of one mark may read the same.
struct ViewerMark: Hashable, Sendable {
  /// How many bytes it has.
  static let byteCount = HalfDigest.byteCount

  private let digest: HalfDigest

  /// The mark of a viewer.
  init(of viewer: Viewer) {
    var bytes: [UInt8] = []
    // No claims are another thing than none that the rules use.
    if let claims = viewer.claims { Value.object(claims).appendJSON(to: &bytes) }
    digest = HalfDigest(of: bytes)
  }

  /// A mark that was written down; nil where there are more or fewer bytes.
  init?(bytes: some Collection<UInt8>) {
    guard let digest = HalfDigest(bytes: bytes) else { return nil }
    self.digest = digest
  }

  /// Adds its bytes to others.
  func append(to bytes: inout [UInt8]) { digest.append(to: &bytes) }
}
