import Crypto

/// The credential of a session: 256 random bits. Its holder has them, and the server keeps their digest alone.
package struct SessionSecret: Sendable {
  /// The bits as a cookie carries them: 43 characters of base64url (RFC 4648 §5), without padding.
  package let text: String
  /// The digest by which the server recognizes them.
  package let digest: SessionDigest

  /// Creates a secret from the random numbers of the operating system.
  package init() {
    let bytes = SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
    (text, digest) = (Base64URL.text(of: bytes), SessionDigest(of: bytes))
  }

  /// Reads the text of a secret. Nil unless it has the form of one; no two texts stand for the same bits.
  package init?(text: some StringProtocol) {
    guard text.utf8.count == Self.characterCount, let bytes = Base64URL.bytes(of: text) else { return nil }
    (self.text, digest) = (String(text), SessionDigest(of: bytes))
  }

  private static let characterCount = 43
}

/// The SHA-256 (FIPS 180-4) of a session's secret, from which nobody can tell the secret.
package struct SessionDigest: Hashable, Sendable {
  /// The length of the digest in bytes.
  package static let byteCount = 32

  private let words: SIMD4<UInt64>

  /// The digest of the bits of a secret.
  init(of secret: [UInt8]) {
    words = SHA256.hash(data: secret).withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
  }

  /// Reads a stored digest. Nil unless there are `byteCount` bytes.
  package init?(bytes: ArraySlice<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    words = bytes.withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
  }

  /// The bytes of the digest.
  package var bytes: [UInt8] { withUnsafeBytes(of: words) { Array($0) } }
}
