package import Crypto
public import Glibc

extension Array<UInt8> {
  /// Appends a number as its bytes, the least significant first.
  @inlinable package mutating func append(littleEndian number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the offset of the first byte with a value from `start` on; nil if there is none. Compares several bytes at
  /// once, which `firstIndex` does not do.
  @inlinable package func offset(of byte: UInt8, from start: Int = 0) -> Int? {
    guard let baseAddress, start < count else { return nil }
    let found = memchr(baseAddress + start, Int32(byte), count - start)
    return found.map { UnsafeRawPointer($0) - baseAddress }
  }
}

extension ArraySlice<UInt8> {
  /// Removes and returns the first bytes; nil if there are fewer.
  @inlinable package mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
    guard self.count >= count else { return nil }
    defer { self = dropFirst(count) }
    return prefix(count)
  }

  /// Removes and returns a number, whose least significant byte comes first; nil if there are too few bytes.
  @inlinable package mutating func takeInteger<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
    take(MemoryLayout<Number>.size)?.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(as: Number.self)) }
  }
}

extension Sequence<UInt8> {
  /// The bytes as hexadecimal digits, two for each.
  package var hexadecimal: String { map { $0.padded(to: 2, radix: 16) }.joined() }
}

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
}
