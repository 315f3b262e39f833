import Glibc
import Logging
import Support
import Synchronization

/// The thread that cuts connections whose clients are too slow with their requests, closes gently those that were
/// refused in the middle of one, wakes libmicrohttpd for those that it sleeps on and for those whose turn has come,
/// watches the memory of the process, and sweeps the conditions.
final class ConnectionSweeper: Sendable {
  private static let intervalMilliseconds: Int32 = 250
  /// How long it sleeps where connections wait for their turns, and where sockets are closed gently.
  private static let turnMilliseconds = Int32(TrafficShare.timeTickMilliseconds)
  private static let closingMilliseconds: Int32 = 10
  private let wake: WakeDescriptor
  private let end: End
  private let thread: SystemThread

  private final class End: Sendable {
    let hasCome = Atomic<Bool>(false)
  }

  /// Starts the thread; `nil` where the system has no thread left.
  init?(_ context: ServerContext, watch: MemoryWatch?) {
    let end = End()
    guard let thread = SystemThread("keyway-sweep", { Self.run(context, watch: watch, until: end) }) else { return nil }
    wake = context.sweeperWake
    self.end = end
    self.thread = thread
  }

  /// Ends the thread and waits for that. Call once.
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
        watch?.giveBack()
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

/// Sockets of requests that were refused before all of them came. Closing such a socket while the client still sends
/// makes the kernel reset it, and the client may lose the answer that says why; so what it sends is read and thrown
/// away for a while (RFC 9112 §9.6).
///
/// Bounded: of more than `capacity` sockets at a time the oldest, which has had the longest time, is closed as it is.
final class LingeringCloses: Sendable {
  private struct Entry {
    let descriptor: Int32
    let start: Int64
    /// Whether the answer was sent before; libmicrohttpd needs some time for its own.
    let isAnswered: Bool
    var isFinished = false
  }

  private static let capacity = 64
  private static let patienceMilliseconds: Int64 = 3_000
  /// By then libmicrohttpd has sent the answer and closed its own descriptor.
  private static let answerMilliseconds: Int64 = 20

  private let entries = Locked<[Entry]>([])

  /// Whether there is anything to do. Any thread.
  var isEmpty: Bool { entries.withLock { $0.isEmpty } }

  /// Keeps a connection's socket open behind its own descriptor. Any thread.
  func add(duplicateOf descriptor: Int32, isAnswered: Bool = false, now: Int64) {
    entries.withLock { entries in
      if entries.count == Self.capacity { close(entries.removeFirst().descriptor) }
      let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
      if duplicate >= 0 { entries.append(Entry(descriptor: duplicate, start: now, isAnswered: isAnswered)) }
    }
  }

  /// Reads what has come, and closes the sockets whose clients have finished or had their time. One thread at a time;
  /// the others may add more meanwhile.
  func drain(now: Int64) {
    var drained = entries.withLock { entries in
      defer { entries = [] }
      return entries
    }
    guard !drained.isEmpty else { return }
    for index in drained.indices {
      let age = now - drained[index].start
      let isAnswered = drained[index].isAnswered || age >= Self.answerMilliseconds
      if isAnswered, !drained[index].isAnswered { shutdown(drained[index].descriptor, Int32(SHUT_WR)) }
      let isAtEnd = Self.discard(drained[index].descriptor)
      drained[index].isFinished = age >= Self.patienceMilliseconds || (isAtEnd && isAnswered)
      if drained[index].isFinished { close(drained[index].descriptor) }
    }
    drained.removeAll { $0.isFinished }
    entries.withLock { entries in
      entries.insert(contentsOf: drained, at: 0)
      while entries.count > Self.capacity { close(entries.removeFirst().descriptor) }
    }
  }

  /// Closes everything at once.
  func closeAll() {
    entries.withLock { entries in
      for entry in entries { close(entry.descriptor) }
      entries = []
    }
  }

  /// Throws away what can be read without waiting, at most a quarter of a megabyte of it, since a client may send as
  /// fast as it is read; says whether the client has closed its side.
  private static func discard(_ descriptor: Int32) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 1) { buffer in
      for _ in 0..<4 {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
        if count > 0 { continue }
        return count == 0 || (errno != EAGAIN && errno != EINTR)
      }
      return false
    }
  }
}
