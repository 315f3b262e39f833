import Synchronization

/// How much one address has the connection threads do in the tick under way: the bytes that they move, or the time that
/// they take. What is over its allowance counts in the next ones.
///
/// Reads of the same moment may pass the allowance by one each.
final class TrafficShare: Sendable {
  /// How long a tick of bytes is.
  static let tickMilliseconds: Int64 = 10
  /// How long a tick of time is: as long as another address may find the threads taken by what one has used at once.
  static let timeTickMilliseconds: Int64 = 2

  private let allowance: Int
  private let tickLength: Int64
  private let used = Atomic<Int>(0)
  private let tick = Atomic<Int64>(0)

  /// Of so many bytes a second; moments are in milliseconds.
  init(bytesPerSecond: Int) {
    allowance = max(1, bytesPerSecond / Int(1_000 / Self.tickMilliseconds))
    tickLength = Self.tickMilliseconds
  }

  /// Of so many nanoseconds of the threads a second; moments are in nanoseconds.
  init(nanosecondsPerSecond: Int) {
    allowance = max(1, nanosecondsPerSecond / Int(1_000 / Self.timeTickMilliseconds))
    tickLength = Self.timeTickMilliseconds * 1_000_000
  }

  /// Counts what was done.
  func count(_ amount: Int) { used.wrappingAdd(amount, ordering: .relaxed) }

  /// What may still be done now; 0 or less where nothing may.
  func rest(now: Int64) -> Int {
    let present = now / tickLength
    let last = tick.load(ordering: .relaxed)
    if present > last, tick.compareExchange(expected: last, desired: present, ordering: .relaxed).exchanged {
      let before = used.load(ordering: .relaxed)
      let (forgiven, isLong) = allowance.multipliedReportingOverflow(by: Int(clamping: present - last))
      used.wrappingSubtract(isLong ? before : min(before, forgiven), ordering: .relaxed)
    }
    return allowance - used.load(ordering: .relaxed)
  }
}
