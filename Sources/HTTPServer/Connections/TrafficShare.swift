import Synchronization

/// How much one address has the connection threads move: the bytes that it sends, those of its answers, and something
/// for each request, in the hundredth of a second under way. What is over its allowance counts in the next ones.
///
/// Reads of the same moment may pass the allowance by one each.
final class TrafficShare: Sendable {
  static let tickMilliseconds: Int64 = 10

  private let allowance: Int
  private let used = Atomic<Int>(0)
  private let tick = Atomic<Int64>(0)

  /// Of so many bytes a second.
  init(bytesPerSecond: Int) {
    allowance = max(1, bytesPerSecond / Int(1_000 / Self.tickMilliseconds))
  }

  /// Counts what was moved.
  func count(_ byteCount: Int) { used.wrappingAdd(byteCount, ordering: .relaxed) }

  /// What may still be moved now; 0 or less where nothing may.
  func rest(now milliseconds: Int64) -> Int {
    let present = milliseconds / Self.tickMilliseconds
    let last = tick.load(ordering: .relaxed)
    if present > last, tick.compareExchange(expected: last, desired: present, ordering: .relaxed).exchanged {
      let before = used.load(ordering: .relaxed)
      let (forgiven, isLong) = allowance.multipliedReportingOverflow(by: Int(clamping: present - last))
      used.wrappingSubtract(isLong ? before : min(before, forgiven), ordering: .relaxed)
    }
    return allowance - used.load(ordering: .relaxed)
  }
}
