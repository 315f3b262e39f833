extension Array {
  /// How many elements stand before a place of a sorted array: `precedes` holds for these and for none behind them.
  /// O(log n).
  func sortedCount(preceding precedes: (Element) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if precedes(self[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
