import CLinux
import Glibc

/// A plain thread that runs one closure.
package struct SystemThread: Sendable {
  private let handle: pthread_t

  /// Starts `body` on a new thread; nil if the system has no thread left. Tools such as top(1) show the thread under
  /// `name`, of which the kernel keeps 15 bytes; without a name it has that of the thread that starts it.
  package init?(_ name: String? = nil, _ body: @escaping @Sendable () -> Void) {
    let start = Unmanaged.passRetained(ThreadStart(name: name, body: body))
    var handle = pthread_t()
    guard pthread_create(&handle, nil, runThread, start.toOpaque()) == 0 else {
      start.release()
      return nil
    }
    self.handle = handle
  }

  /// Waits for the end of the thread. On the thread itself, detaches it instead. Call once.
  package func join() {
    if pthread_equal(pthread_self(), handle) != 0 {
      pthread_detach(handle)
    } else {
      pthread_join(handle, nil)
    }
  }

  /// Detaches the thread, whose end cannot be waited for then. Call once, instead of `join`.
  package func detach() { pthread_detach(handle) }

  /// The number of processors that run threads.
  package static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  /// Gives other threads priority over the calling thread from now on (a nice value of 10).
  package static func yieldToOthers() { setNice(10) }

  /// Sets the nice value of the calling thread.
  package static func setNice(_ value: Int) {
    // On Linux this concerns the one thread, whatever POSIX says. A failure is not a reason to stop.
    _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Int32(value))
  }

  /// Lets the calling thread run only while nothing else needs a processor, from now on (`SCHED_IDLE`, sched(7)).
  package static func runWhenIdle() {
    // <sched.h> hides the name unless _GNU_SOURCE is defined.
    let whenIdle: Int32 = 5
    var parameters = sched_param()
    _ = sched_setscheduler(0, whenIdle, &parameters)
  }

  /// Suspends the calling thread for a while.
  package static func pause(milliseconds: Int) {
    var time = timespec(tv_sec: milliseconds / 1_000, tv_nsec: milliseconds % 1_000 * 1_000_000)
    nanosleep(&time, nil)
  }
}

private final class ThreadStart: Sendable {
  let name: String?
  let body: @Sendable () -> Void

  init(name: String?, body: @escaping @Sendable () -> Void) {
    (self.name, self.body) = (name, body)
  }
}

private func runThread(_ start: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let start else { return nil }
  let taken = Unmanaged<ThreadStart>.fromOpaque(start).takeRetainedValue()
  if let name = taken.name { keyway_name_thread(name) }
  taken.body()
  return nil
}
