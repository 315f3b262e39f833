import Synchronization

/// How often something may happen in the hundredth of a second under way. Threads that ask at the same moment may pass
/// it by one each.
final class TickQuota: Sendable {
  private let limit: Int
  private let used = Atomic<Int>(0)
  private let tick = Atomic<Int64>(0)

  /// Of so many times a second, and at least one a tick.
  init(perSecond count: Int) {
    limit = max(1, count / Int(1_000 / TrafficShare.tickMilliseconds))
  }

  /// How often it may still happen in the tick of a moment, in milliseconds.
  func left(now milliseconds: Int64) -> Int {
    let present = milliseconds / TrafficShare.tickMilliseconds
    let last = tick.load(ordering: .relaxed)
    if present > last, tick.compareExchange(expected: last, desired: present, ordering: .relaxed).exchanged {
      used.store(0, ordering: .relaxed)
    }
    return max(0, limit - used.load(ordering: .relaxed))
  }

  /// It happened at a moment.
  func take(now milliseconds: Int64) {
    if left(now: milliseconds) > 0 { used.wrappingAdd(1, ordering: .relaxed) }
  }
}
