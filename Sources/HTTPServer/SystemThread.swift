import Glibc

/// A plain thread that runs one closure.
package struct SystemThread: Sendable {
  private let handle: pthread_t

  /// Starts `body` on a new thread, or gives `nil` where the system has no thread left.
  package init?(_ body: @escaping @Sendable () -> Void) {
    let start = Unmanaged.passRetained(ThreadStart(body))
    var handle = pthread_t()
    guard pthread_create(&handle, nil, runThread, start.toOpaque()) == 0 else {
      start.release()
      return nil
    }
    self.handle = handle
  }

  /// Waits for the end of the thread; on the thread itself it gives up the right to wait instead. Call once.
  package func join() {
    if pthread_equal(pthread_self(), handle) != 0 {
      pthread_detach(handle)
    } else {
      pthread_join(handle, nil)
    }
  }

  /// How many processors there are to run threads.
  package static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  /// Lets other threads have the processors first, where they want them, from now on.
  package static func yieldToOthers() { setNice(10) }

  /// Sets the nice value of the calling thread.
  package static func setNice(_ value: Int) {
    // On Linux this is about the one thread, whatever POSIX says. That it cannot be done is no reason to stop.
    _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Int32(value))
  }

  /// Keeps the calling thread from working for a while.
  package static func pause(milliseconds: Int) {
    var time = timespec(tv_sec: milliseconds / 1_000, tv_nsec: milliseconds % 1_000 * 1_000_000)
    nanosleep(&time, nil)
  }
}

private final class ThreadStart: Sendable {
  let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
  }
}

private func runThread(_ start: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let start else { return nil }
  Unmanaged<ThreadStart>.fromOpaque(start).takeRetainedValue().body()
  return nil
}
