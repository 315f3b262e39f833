/// Says when to give memory back to the system after a flood: the C library keeps what is freed.
struct MemoryTrim: Sendable {
  private let leastFall: Int
  private var peak = 0
  private var sweepsLeft: Int?

  /// Looks at an amount that has to fall by more than `leastFall`, and by more than a half.
  init(leastFall: Int) {
    self.leastFall = leastFall
  }

  /// Whether now is the time: two sweeps after the fall, when every thread has freed its own. Call at regular times
  /// with the amount.
  mutating func isDue(_ amount: Int) -> Bool {
    peak = max(peak, amount)
    if amount < peak / 2, peak - amount > leastFall {
      peak = amount
      sweepsLeft = 2
      return false
    }
    guard let left = sweepsLeft else { return false }
    sweepsLeft = left > 1 ? left - 1 : nil
    return left == 1
  }
}
