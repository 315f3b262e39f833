import Dispatch
import Glibc
import Support
import Synchronization
import TestKit
import Testing

/// The number of tests that run in parallel.
///
/// Swift Testing starts all tests of a run at once. A test that waits then stays open, with its servers, until every
/// other one has run. So a run has a width: twice the number of cores, at least 4.
/// `SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH` in the environment of `swift test` sets another.
enum TestWidth {
  /// The variable that Swift Testing reads before the first test.
  static let variable = "SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH"

  /// The width of this run.
  static var value: Int? { getenv(variable).flatMap { Int(String(cString: $0)) } }
}

/// Sets the width if the environment has none, and makes tests run on `TestThreads`. The loader calls it before `main`;
/// a test, or its trait, would be too late, after Swift Testing has read the variable.
@used @section(".init_array")
private let prepareTests: @convention(c) () -> Void = {
  setenv(TestWidth.variable, String(max(4, 2 * SystemThread.coreCount)), 0)
  // If the runtime has no such variable, tests stay on its own threads, and take longer.
  guard let variable = dlsym(nil, "swift_task_enqueueGlobal_hook") else { return }
  typealias Hook = @convention(thin) (UnownedJob, @convention(thin) (UnownedJob) -> Void) -> Void
  let hook: Hook = { job, _ in TestThreads.shared.enqueue(ExecutorJob(job)) }
  variable.assumingMemoryBound(to: Hook.self).pointee = hook
}

@Suite("The width of a run of tests") struct TestWidthTests {
  private static let running = Atomic(0)

  @Test("No more tests run side by side, however many wait", arguments: 0..<64)
  func width(number: Int) async throws {
    let width = try #require(TestWidth.value)
    let count = Self.running.add(1, ordering: .relaxed).newValue
    defer { Self.running.subtract(1, ordering: .relaxed) }
    #expect(count <= width)
    // Each lets the others run.
    for _ in 0..<64 { await Task.yield() }
  }

  @Test("Tasks that keep their threads while they wait run side by side, more of them than there are cores")
  func threads() async {
    let count = SystemThread.coreCount + 1
    let begun = Locked(0)
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<count {
        group.addTask {
          begun.withLock { $0 += 1 }
          return Deadline().awaits { begun.withLock { $0 == count } }
        }
      }
      for await hasAllBegun in group { #expect(hasAllBegun) }
    }
  }
}

/// The threads that tests run on: as many as the width, and some for tasks that tests start.
///
/// Most tests block their thread while they wait for a socket or a program. Swift's own pool has one thread for each
/// core: a few such tests would block all of them, with idle cores.
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
    // On this thread, a pipe without a reader is an error of the call that writes.
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
