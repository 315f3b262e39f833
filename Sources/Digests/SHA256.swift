import CNettle

/// The hash function SHA-256 (FIPS 180-4), carried out by Nettle. Bytes are added piece by piece.
package struct SHA256: Sendable {
  /// How many bytes a digest has.
  package static let byteCount = Int(SHA256_DIGEST_SIZE)

  private var context = sha256_ctx()

  /// The hash of nothing yet.
  package init() {
    nettle_sha256_init(&context)
  }

  /// Adds the bytes of a buffer.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    nettle_sha256_update(&context, bytes.count, bytes.bindMemory(to: UInt8.self).baseAddress)
  }

  /// Adds some bytes.
  package mutating func update(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { update($0) }
  }

  /// Adds a number as its eight bytes, the least significant first.
  package mutating func update(_ number: UInt64) {
    withUnsafeBytes(of: number.littleEndian) { update($0) }
  }

  /// The first eight bytes of the digest of all that was added, as a little-endian number. Begins anew.
  package mutating func finalizePrefix() -> UInt64 {
    var prefix: UInt64 = 0
    withUnsafeMutableBytes(of: &prefix) { bytes in
      nettle_sha256_digest(&context, bytes.count, bytes.bindMemory(to: UInt8.self).baseAddress)
    }
    return UInt64(littleEndian: prefix)
  }

  /// The digest of all that was added: 32 bytes. Begins anew.
  package mutating func finalize() -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, count in
      nettle_sha256_digest(&context, Self.byteCount, buffer.baseAddress)
      count = Self.byteCount
    }
  }
}
