/// The longest subsequence whose elements increase: of rows that were reordered, the most that can stay where they are.
enum LongestIncreasingRun {
  /// The positions of its elements, ascending. O(n log n); where there are several of one length, always the same one.
  static func positions(of numbers: [Int]) -> [Int] {
    // For each length the position of the least number that a run of this length can end with.
    var ends: [Int] = []
    var previous = [Int?](repeating: nil, count: numbers.count)
    for (position, number) in numbers.enumerated() {
      let length = ends.sortedCount { numbers[$0] < number }
      previous[position] = length > 0 ? ends[length - 1] : nil
      if length == ends.count { ends.append(position) } else { ends[length] = position }
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
