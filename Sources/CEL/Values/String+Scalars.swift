extension String {
  /// Whether both have the same Unicode scalars: `==` of `String` also takes canonically equivalent ones for equal.
  /// O(n).
  package func hasSameScalars(as other: String) -> Bool {
    utf8.count == other.utf8.count && compareBytes(other) == 0
  }

  /// Below 0, 0 or above 0 by the order of the Unicode scalars, which is that of the bytes. O(n) in the length that
  /// both share.
  package func compareBytes(_ other: String) -> Int {
    let quick = utf8.withContiguousStorageIfAvailable { left in
      other.utf8.withContiguousStorageIfAvailable { Self.compare(left, $0) }
    }
    if case .some(.some(let order)) = quick { return order }
    if utf8.lexicographicallyPrecedes(other.utf8) { return -1 }
    return utf8.elementsEqual(other.utf8) ? 0 : 1
  }

  /// Eight bytes a step: read with the most significant byte first, they compare as the bytes do.
  private static func compare(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Int {
    let shared = Swift.min(left.count, right.count)
    let leftBytes = UnsafeRawBufferPointer(left)
    let rightBytes = UnsafeRawBufferPointer(right)
    var offset = 0
    while offset + 8 <= shared {
      let leftWord = UInt64(bigEndian: leftBytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      let rightWord = UInt64(bigEndian: rightBytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      guard leftWord == rightWord else { return leftWord < rightWord ? -1 : 1 }
      offset += 8
    }
    while offset < shared {
      guard left[offset] == right[offset] else { return left[offset] < right[offset] ? -1 : 1 }
      offset += 1
    }
    return left.count - right.count
  }
}
