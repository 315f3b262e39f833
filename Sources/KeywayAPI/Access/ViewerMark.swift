import Digests
import KeyValueModel

/// What stands for a viewer where an answer is kept that was made for it: a digest of the claims that the read rules
/// use. Those of one mark may read the same.
struct ViewerMark: Hashable, Sendable {
  /// How many bytes it has.
  static let byteCount = 16

  private let high: UInt64
  private let low: UInt64

  /// The mark of a viewer.
  init(of viewer: Viewer) {
    var bytes: [UInt8] = []
    // No claims are another thing than none that the rules use.
    if let claims = viewer.claims { Value.object(claims).appendJSON(to: &bytes) }
    var hash = SHA256()
    hash.update(bytes)
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
}
