/// The longest subsequence whose elements increase: of rows that were reordered, the most that can stay where they are.
enum LongestIncreasingRun {
  /// The positions of its elements, ascending. O(n log n); where there are several of one length, always the same one.
  static func positions(of numbers: [Int]) -> [Int] {
    // For each length the position of the least number that a run of this length can end with.
    var ends: [Int] = []
    var previous = [Int?](repeating: nil, count: numbers.count)
    for (position, number) in numbers.enumerated() {
      var low = 0
      var high = ends.count
      while low < high {
        let middle = (low + high) / 2
        if numbers[ends[middle]] < number { low = middle + 1 } else { high = middle }
      }
      previous[position] = low > 0 ? ends[low - 1] : nil
      if low == ends.count { ends.append(position) } else { ends[low] = position }
    }
    var run: [Int] = []
    var position = ends.last
    while let current = position {
      run.append(current)
      position = previous[current]
    }
    return run.reversed()
  }
}
