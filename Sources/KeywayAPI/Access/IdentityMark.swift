import Digests
package import HTTPServer

/// What stands for the `sub` of an identity where a client is counted or a key belongs to one: a digest of its bytes,
/// of the same length for every `sub`, and of which no two with one digest are known.
package struct IdentityMark: Hashable, Sendable {
  /// How many bytes it has.
  static let byteCount = 16

  private let high: UInt64
  private let low: UInt64

  /// The mark of a `sub`.
  package init(of subject: String) {
    var hash = SHA256()
    hash.update(Array(subject.utf8))
    (high, low) = hash.finalize().withUnsafeBytes { bytes in
      (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
  }

  /// A mark that was written down; nil where there are more or fewer bytes.
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

  /// The client that has the shares of this identity.
  package var client: ClientAddress { ClientAddress(digest: high, low) }
}
