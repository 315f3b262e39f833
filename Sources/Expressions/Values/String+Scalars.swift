extension String {
  /// Whether both have the same Unicode scalars: `==` of `String` also takes canonically equivalent ones for equal.
  func hasSameScalars(as other: String) -> Bool {
    guard utf8.count == other.utf8.count else { return false }
    return compareBytes(other) == 0
  }

  /// Below 0, 0 or above 0 by the order of the Unicode scalars, which is that of the bytes.
  func compareBytes(_ other: String) -> Int {
    var left = self
    var right = other
    return left.withUTF8 { left in
      right.withUTF8 { right in
        for index in 0..<Swift.min(left.count, right.count) where left[index] != right[index] {
          return left[index] < right[index] ? -1 : 1
        }
        return left.count - right.count
      }
    }
  }
}
