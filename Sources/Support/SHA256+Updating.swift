package import Crypto

extension SHA256 {
  /// Adds the bytes of a buffer.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    update(bufferPointer: bytes)
  }

  /// Adds some bytes.
  package mutating func update(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { update(bufferPointer: $0) }
  }

  /// Adds a number as its eight bytes, the least significant first.
  package mutating func update(_ number: UInt64) {
    withUnsafeBytes(of: number.littleEndian) { update(bufferPointer: $0) }
  }

  /// The first eight bytes of the digest of all that was added, as a little-endian number.
  package func finalizePrefix() -> UInt64 {
    finalize().withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
  }
}

extension Sequence<UInt8> {
  /// The bytes as hexadecimal digits, two for each.
  package var hexadecimal: String { map { $0.padded(to: 2, radix: 16) }.joined() }
}
