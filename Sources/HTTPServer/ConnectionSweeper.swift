import CMicrohttpd
import CSocketCalls
import Glibc
import Logging

/// The thread that cuts connections whose clients are too slow with their requests, closes gently those that were
/// refused in the middle of one, wakes libmicrohttpd for those that it sleeps on, watches the memory of the process,
/// and sweeps the conditions.
final class ConnectionSweeper: Sendable {
  private static let intervalMilliseconds: Int32 = 250
  private static let lingeringMilliseconds: Int32 = 10
  private let end: WakeDescriptor
  private let thread: SystemThread

  /// Starts the thread; `nil` where the system has no descriptor or thread left.
  init?(_ context: ServerContext, watch: MemoryWatch?) {
    guard let end = WakeDescriptor() else { return nil }
    guard let thread = SystemThread({ Self.run(context, watch: watch, until: end) }) else { return nil }
    self.end = end
    self.thread = thread
  }

  /// Ends the thread and waits for that. Call once.
  func stop() {
    end.wake()
    thread.join()
  }

  private static func run(_ context: ServerContext, watch: MemoryWatch?, until end: WakeDescriptor) {
    var watch = watch
    var lastLook = MonotonicClock.milliseconds
    var lastSecond = MonotonicClock.seconds
    var closedCount = keyway_connections_without_descriptor()
    while !end.wait(milliseconds: context.lingering.isEmpty ? intervalMilliseconds : lingeringMilliseconds) {
      let now = MonotonicClock.milliseconds
      context.lingering.drain(now: now)
      let count = context.registry.cutOverdue(now: now)
      var unread = 0
      if now - lastLook >= Int64(intervalMilliseconds) {
        lastLook = now
        unread = context.registry.wakeUnread()
        watch?.look(.current)
        watch?.giveBack()
        let count = keyway_connections_without_descriptor()
        if count > closedCount { context.conditions.note(.descriptors, count: count - closedCount) }
        closedCount = count
      }
      if unread > 0 { context.logger.debug("woke unread connections", metadata: ["connections": "\(unread)"]) }
      if now / 1_000 != Int64(lastSecond) {
        lastSecond = MonotonicClock.seconds
        context.conditions.sweep()
      }
      if count > 0 { context.logger.debug("cut slow clients", metadata: ["connections": "\(count)"]) }
    }
    context.lingering.closeAll()
  }
}
