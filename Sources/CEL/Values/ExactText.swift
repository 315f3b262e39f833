/// A text that equals another one only if both have the same Unicode scalars, as names in JSON, keys of maps and
/// strings of expressions are compared. `String` treats canonically equivalent texts as equal, such as the two ways to
/// write `é`.
package struct ExactText: Hashable, Sendable, ExpressibleByStringLiteral {
  /// The text as it was written.
  package let text: String

  /// Creates the exact form of `text`. O(1).
  package init(_ text: String) { self.text = text }

  /// Creates the exact form of a literal.
  package init(stringLiteral text: String) { self.text = text }

  /// Returns true if both have the same scalars. O(n) in the shorter text.
  package static func == (left: ExactText, right: ExactText) -> Bool { left.text.hasSameScalars(as: right.text) }

  /// Hashes the bytes of the text. O(n).
  package func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(UInt8(0xFF))
  }
}

extension String {
  /// Returns true if both have the same Unicode scalars: `==` of `String` also treats canonically equivalent texts as
  /// equal. O(n).
  package func hasSameScalars(as other: String) -> Bool {
    utf8.count == other.utf8.count && compareBytes(other) == 0
  }

  /// Returns a number below 0, 0 or above 0 by the order of the Unicode scalars, which is that of the bytes. O(n) in
  /// the length that both share.
  package func compareBytes(_ other: String) -> Int {
    let quick = utf8.withContiguousStorageIfAvailable { left in
      other.utf8.withContiguousStorageIfAvailable { Self.compare(left, $0) }
    }
    if case .some(.some(let order)) = quick { return order }
    if utf8.lexicographicallyPrecedes(other.utf8) { return -1 }
    return utf8.elementsEqual(other.utf8) ? 0 : 1
  }

  /// Compares eight bytes per step: read with the most significant byte first, they compare as the bytes do.
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
