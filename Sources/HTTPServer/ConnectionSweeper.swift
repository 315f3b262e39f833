import CMicrohttpd
import CSocketCalls
import Glibc
import Logging

/// The thread that cuts connections whose clients are too slow with their requests, closes gently those that were
/// refused in the middle of one, and wakes libmicrohttpd for those that it sleeps on.
final class ConnectionSweeper: Sendable {
  private static let intervalMilliseconds: Int32 = 250
  private static let lingeringMilliseconds: Int32 = 10
  private let end: WakeDescriptor
  private let thread: SystemThread

  /// Starts the thread; `nil` where the system has no descriptor or thread left.
  init?(_ context: ServerContext) {
    guard let end = WakeDescriptor() else { return nil }
    guard let thread = SystemThread({ Self.run(context, until: end) }) else { return nil }
    self.end = end
    self.thread = thread
  }

  /// Ends the thread and waits for that. Call once.
  func stop() {
    end.wake()
    thread.join()
  }

  private static func run(_ context: ServerContext, until end: WakeDescriptor) {
    var lastLook = MonotonicClock.milliseconds
    var shortage = DescriptorShortage(closedCount: keyway_connections_without_descriptor())
    while !end.wait(milliseconds: context.lingering.isEmpty ? intervalMilliseconds : lingeringMilliseconds) {
      let now = MonotonicClock.milliseconds
      context.lingering.drain(now: now)
      let count = context.registry.cutOverdue(now: now)
      let unread = now - lastLook < Int64(intervalMilliseconds) ? 0 : context.registry.wakeUnread()
      if now - lastLook >= Int64(intervalMilliseconds) { lastLook = now }
      if let count = shortage.begins(closedCount: keyway_connections_without_descriptor(), now: now) {
        context.logger.error("no descriptor is left; connections are closed", metadata: ["connections": "\(count)"])
      }
      if unread > 0 { context.logger.debug("woke unread connections", metadata: ["connections": "\(unread)"]) }
      if count > 0 { context.logger.debug("cut slow clients", metadata: ["connections": "\(count)"]) }
    }
    context.lingering.closeAll()
  }
}
