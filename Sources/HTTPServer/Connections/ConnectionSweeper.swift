import Logging
import Support
import Synchronization

/// The thread that cuts connections whose clients are too slow with their requests, closes gently those that were
/// refused in the middle of one, wakes libmicrohttpd for connections that it overlooks and for those that the pacer
/// releases, watches the memory of the process, and sweeps the conditions.
final class ConnectionSweeper: Sendable {
  private static let intervalMilliseconds: Int32 = 250
  /// The sleep while connections wait in the pacer, and while sockets are being closed gently, in milliseconds.
  private static let turnMilliseconds = Int32(TrafficShare.timeTickMilliseconds)
  private static let closingMilliseconds: Int32 = 10
  private let wake: WakeDescriptor
  private let end: End
  private let thread: SystemThread

  private final class End: Sendable {
    let hasCome = Atomic<Bool>(false)
  }

  /// Starts the thread; nil if the system has no thread left.
  init?(_ context: ServerContext, watch: MemoryWatch?) {
    let end = End()
    guard let thread = SystemThread("keyway-sweep", { Self.run(context, watch: watch, until: end) }) else { return nil }
    wake = context.sweeperWake
    self.end = end
    self.thread = thread
  }

  /// Stops the thread and waits for it. Call once.
  func stop() {
    end.hasCome.store(true, ordering: .relaxed)
    wake.wake()
    thread.join()
  }

  private static func run(_ context: ServerContext, watch: MemoryWatch?, until end: End) {
    var watch = watch
    var lastLook = SystemClock.coarseMilliseconds
    var lastDrain = lastLook
    var lastSecond = SystemClock.coarseSeconds
    while true {
      if context.sweeperWake.wait(milliseconds: pause(context)) { context.sweeperWake.reset() }
      if end.hasCome.load(ordering: .relaxed) { break }
      let now = SystemClock.coarseMilliseconds
      context.registry.wake(context.pacer.goOn(now: now, nanoseconds: SystemClock.nanoseconds))
      if now - lastDrain >= Int64(closingMilliseconds) {
        lastDrain = now
        context.lingering.drain(now: now)
      }
      var (overdue, unread) = (0, 0)
      if now - lastLook >= Int64(intervalMilliseconds) {
        lastLook = now
        overdue = context.registry.cutOverdue(now: now)
        unread = context.registry.wakeUnread()
        watch?.look(.current)
        watch?.releaseFreeMemory()
      }
      if unread > 0 { context.logger.debug("woke unread connections", metadata: ["connections": "\(unread)"]) }
      if now / 1_000 != Int64(lastSecond) {
        lastSecond = SystemClock.coarseSeconds
        context.conditions.sweep()
      }
      if overdue > 0 { context.logger.debug("cut slow clients", metadata: ["connections": "\(overdue)"]) }
    }
    context.lingering.closeAll()
  }

  private static func pause(_ context: ServerContext) -> Int32 {
    guard context.pacer.isEmpty else { return turnMilliseconds }
    return context.lingering.isEmpty ? intervalMilliseconds : closingMilliseconds
  }
}
