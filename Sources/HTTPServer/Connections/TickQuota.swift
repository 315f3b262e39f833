import Synchronization

/// How often something may happen in the part of a second under way. Threads that ask at the same moment may pass it by
/// one each.
final class TickQuota: Sendable {
  private let limit: Int
  private let tickMilliseconds: Int64
  private let used = Atomic<Int>(0)
  private let tick = Atomic<Int64>(0)

  /// Of so many times a second. The ticks are as short as those of a share of time, so that whatever else is to be done
  /// finds the threads free as soon; where not one would fall into such a tick, they are hundredths of a second, with
  /// at least one in each.
  init(perSecond count: Int) {
    let isOften = count >= Int(1_000 / TrafficShare.timeTickMilliseconds)
    tickMilliseconds = isOften ? TrafficShare.timeTickMilliseconds : TrafficShare.tickMilliseconds
    limit = max(1, count / Int(1_000 / tickMilliseconds))
  }

  /// How often it may still happen in the tick of a moment, in milliseconds.
  func left(now milliseconds: Int64) -> Int {
    let present = milliseconds / tickMilliseconds
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
