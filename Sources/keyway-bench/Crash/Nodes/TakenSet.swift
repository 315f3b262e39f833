/// Which operations of a history a search has taken: a bit for each.
struct TakenSet: Hashable, Sendable {
  private var words: [UInt64]
  /// How many of them were answered.
  private(set) var answered = 0
  /// All before this one are taken.
  private(set) var firstMissing = 0
  private let count: Int

  /// None of so many.
  init(count: Int) {
    self.count = count
    words = [UInt64](repeating: 0, count: (count + 63) / 64)
  }

  /// Whether it is taken.
  func contains(_ index: Int) -> Bool { words[index >> 6] >> UInt64(index & 63) & 1 == 1 }

  /// Takes one that is not taken yet.
  mutating func insert(_ index: Int, isAnswered: Bool) {
    words[index >> 6] |= 1 << UInt64(index & 63)
    if isAnswered { answered += 1 }
    while firstMissing < count, contains(firstMissing) { firstMissing += 1 }
  }
}
