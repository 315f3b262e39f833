import Dispatch
import Glibc
import Support

/// The threads that tests run on: as many as the width, and some for tasks that tests begin.
///
/// Most tests wait in calls that keep their thread, for a socket or a program. Swift's own pool has one thread for each
/// core: a few such tests hold all of them, and the cores are idle.
final class TestThreads: TaskExecutor {
  static let shared = TestThreads()

  private let jobs = Locked<[UnownedJob]>([])
  private let count = DispatchSemaphore(value: 0)

  private init() {
    for _ in 0..<min(64, SystemThread.coreCount + (TestWidth.value ?? 0)) {
      SystemThread("tests") { Self.shared.run() }?.detach()
    }
  }

  private func run() -> Never {
    // For what runs here, a pipe without a reader is an error of the call that writes.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    while true {
      count.wait()
      let job = jobs.withLock { $0.removeFirst() }
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    count.signal()
  }
}
