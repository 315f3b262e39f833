/// Finds a sequence in another in time proportional to their lengths (Knuth, Morris and Pratt, 1977).
struct SubstringSearch<Element: Equatable> {
  private let needle: [Element]
  /// For each length of a matched beginning: how long its longest border is.
  private let borders: [Int]

  init(_ needle: [Element]) {
    self.needle = needle
    var borders = Array(repeating: 0, count: needle.count)
    var matched = 0
    for index in needle.indices.dropFirst() {
      while matched > 0, needle[index] != needle[matched] { matched = borders[matched - 1] }
      if needle[index] == needle[matched] { matched += 1 }
      borders[index] = matched
    }
    self.borders = borders
  }

  /// Calls `found` with the place of each occurrence from `start` on, until it gives false. An empty needle, which is
  /// everywhere, is for the caller.
  func forEachMatch(in haystack: some Collection<Element>, from start: Int = 0, _ found: (Int) -> Bool) {
    guard !needle.isEmpty else { return }
    var matched = 0
    var index = start
    for element in haystack.dropFirst(start) {
      while matched > 0, element != needle[matched] { matched = borders[matched - 1] }
      if element == needle[matched] { matched += 1 }
      index += 1
      if matched == needle.count {
        guard found(index - needle.count) else { return }
        matched = borders[matched - 1]
      }
    }
  }

  /// The place of the first occurrence from `start` on, nil when there is none.
  func first(in haystack: some Collection<Element>, from start: Int = 0) -> Int? {
    if needle.isEmpty { return start <= haystack.count ? start : nil }
    var first: Int?
    forEachMatch(in: haystack, from: start) { place in
      first = place
      return false
    }
    return first
  }
}
