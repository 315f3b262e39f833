import Crypto
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
