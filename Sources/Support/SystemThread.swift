import CLinux
import Glibc

/// A plain thread that runs one closure.
package struct SystemThread: Sendable {
  private let handle: pthread_t

  /// Starts `body` on a new thread, or gives `nil` where the system has no thread left. Tools such as top(1) show the
  /// thread under `name`, of which the kernel keeps 15 bytes; without one it has that of the thread that starts it.
  package init?(_ name: String? = nil, _ body: @escaping @Sendable () -> Void) {
    let start = Unmanaged.passRetained(ThreadStart(name: name, body: body))
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

  /// Gives up the right to wait for the end of the thread. Call once, in the place of `join`.
  package func detach() { pthread_detach(handle) }

  /// How many processors there are to run threads.
  package static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  /// Lets other threads have the processors first, where they want them, from now on.
  package static func yieldToOthers() { setNice(10) }

  /// Sets the nice value of the calling thread.
  package static func setNice(_ value: Int) {
    // On Linux this is about the one thread, whatever POSIX says. That it cannot be done is no reason to stop.
    _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Int32(value))
  }

  /// Has the calling thread run while nothing else wants a processor, from now on (`SCHED_IDLE`, sched(7)).
  package static func runWhenIdle() {
    // <sched.h> hides the name from what is not GNU source.
    let whenIdle: Int32 = 5
    var parameters = sched_param()
    _ = sched_setscheduler(0, whenIdle, &parameters)
  }

  /// Keeps the calling thread from working for a while.
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
