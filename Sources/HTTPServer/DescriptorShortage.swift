/// Finds out when connections begin to be closed because no descriptor is left, so that it is reported once and not for
/// each of them.
struct DescriptorShortage {
  /// A shortage is over when nothing was closed for so long.
  private static let quietMilliseconds: Int64 = 60_000

  private var closedCount: Int
  private var lastMilliseconds: Int64?

  /// A watch that begins when so many have been closed.
  init(closedCount: Int) {
    self.closedCount = closedCount
  }

  /// Given how many have been closed by now, how many that are more than before where a shortage begins with them.
  mutating func begins(closedCount: Int, now milliseconds: Int64) -> Int? {
    let newCount = closedCount - self.closedCount
    guard newCount > 0 else { return nil }
    self.closedCount = closedCount
    defer { lastMilliseconds = milliseconds }
    if let lastMilliseconds, milliseconds - lastMilliseconds < Self.quietMilliseconds { return nil }
    return newCount
  }
}
