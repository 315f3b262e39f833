extension String {
  /// How the bytes of this text's UTF-8 stand to those of the other. Quicker than a comparison of two `utf8` views, and
  /// blind to canonical equivalence, which Swift's own `<` is not. O(n) in the length that both share.
  func byteOrdering(to other: String) -> Ordering {
    let quick = utf8.withContiguousStorageIfAvailable { left in
      other.utf8.withContiguousStorageIfAvailable { Self.ordering(of: left, to: $0) }
    }
    if case .some(.some(let ordering)) = quick { return ordering }
    if utf8.lexicographicallyPrecedes(other.utf8) { return .ascending }
    return utf8.elementsEqual(other.utf8) ? .same : .descending
  }

  /// Eight bytes a step: read with the most significant byte first, they compare as the bytes do.
  private static func ordering(of left: UnsafeBufferPointer<UInt8>, to right: UnsafeBufferPointer<UInt8>) -> Ordering {
    let shared = Swift.min(left.count, right.count)
    let leftBytes = UnsafeRawBufferPointer(left)
    let rightBytes = UnsafeRawBufferPointer(right)
    var offset = 0
    while offset + 8 <= shared {
      let leftWord = UInt64(bigEndian: leftBytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      let rightWord = UInt64(bigEndian: rightBytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      guard leftWord == rightWord else { return leftWord < rightWord ? .ascending : .descending }
      offset += 8
    }
    while offset < shared {
      guard left[offset] == right[offset] else { return left[offset] < right[offset] ? .ascending : .descending }
      offset += 1
    }
    return Ordering(left.count, right.count)
  }
}
