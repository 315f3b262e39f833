/// An element that has its place by a hash.
protocol HashOrdered {
  /// The hash: what comes first is less.
  var order: UInt64 { get }
}

extension Array where Element: HashOrdered {
  /// The elements of some lists in the order of their hashes; those of equal hashes in no order. O(n), as hashes are
  /// spread evenly.
  ///
  /// They are shared out by the first bits of the hashes, so that what is then sorted fits into the nearest cache.
  static func joined(inHashOrder lists: [[Element]]) -> [Element] {
    let count = lists.reduce(0) { $0 + $1.count }
    let shift = UInt64(64 - shareBits(of: count))
    var ends = [Int](repeating: 0, count: 1 << (64 - shift))
    for list in lists {
      for element in list { ends[Int(element.order &>> shift)] += 1 }
    }
    var start = 0
    for share in ends.indices {
      start += ends[share]
      ends[share] = start - ends[share]
    }
    return Array(unsafeUninitializedCapacity: count) { buffer, initialized in
      for list in lists {
        for element in list {
          let share = Int(element.order &>> shift)
          buffer.initializeElement(at: ends[share], to: element)
          ends[share] += 1
        }
      }
      initialized = count
      var start = 0
      for end in ends {
        var share = UnsafeMutableBufferPointer(rebasing: buffer[start..<end])
        share.sort { $0.order < $1.order }
        start = end
      }
    }
  }

  /// By how many bits so many elements are shared out: to about 64 a share, and to no more shares than a cache has
  /// lines for.
  private static func shareBits(of count: Int) -> Int {
    Swift.min(12, Swift.max(1, (count / 64).leadingZeroBitCount.distance(to: Int.bitWidth)))
  }
}
