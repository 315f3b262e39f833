package import HTTPServer

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
