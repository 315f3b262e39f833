import Dispatch
import HTTPServer
import Support

/// The threads on which answers are worked out that take long, so that the threads of connections are free for those
/// that do not: for health, for writes, and for the next request.
final class ReadingPool: Sendable {
  /// Something to do for a client.
  typealias Job = @Sendable () -> Void

  /// What the threads share. It outlives the pool as long as one of them has something to do.
  private final class Work: Sendable {
    let queue: Locked<FairQueue<ClientAddress, Job>>
    let hasStopped = Locked(false)
    /// Wakes a thread for each job that may have become possible.
    let wakes = DispatchSemaphore(value: 0)

    init(_ queue: FairQueue<ClientAddress, Job>) {
      self.queue = Locked(queue)
    }

    /// What each thread does.
    func run() {
      // What takes long can wait for what does not: for connections, for the writer and for streams.
      SystemThread.yieldToOthers()
      while true {
        wakes.wait()
        if hasStopped.withLock({ $0 }) { return }
        doAll()
      }
    }

    private func doAll() {
      while let (job, client) = queue.withLock({ $0.next() }) {
        // Jobs may become possible by twos, where the end of one leaves a single client waiting.
        if queue.withLock({ $0.hasNext }) { wakes.signal() }
        job()
        queue.withLock { $0.finish(client) }
        if hasStopped.withLock({ $0 }) { return }
      }
    }
  }

  private let work: Work
  private let threads: Locked<[SystemThread]>

  /// Starts the threads: `limits.threads`, or one for each core, and two at least. Fewer where the system has no more.
  init(_ limits: RequestLimits) {
    let count = limits.threads > 0 ? limits.threads : max(2, SystemThread.coreCount)
    let work = Work(
      FairQueue<ClientAddress, Job>(threads: count, limit: limits.waiting, limitPerClient: limits.waitingPerClient))
    self.work = work
    threads = Locked((0..<count).compactMap { _ in SystemThread("keyway-read") { work.run() } })
  }

  deinit { stop() }

  /// Has a job done in its turn. False where too much waits already, of all clients or of this one.
  func submit(for client: ClientAddress, _ job: @escaping Job) -> Bool {
    guard threads.withLock({ !$0.isEmpty }), work.queue.withLock({ $0.enqueue(job, of: client) }) else { return false }
    work.wakes.signal()
    return true
  }

  /// How many jobs wait.
  var waitingCount: Int { work.queue.withLock { $0.waitingCount } }

  /// How many jobs are being done.
  var runningCount: Int { work.queue.withLock { $0.runningCount } }

  /// Lets go of what waits, and returns when what runs has ended. The first call counts.
  func stop() {
    work.hasStopped.withLock { $0 = true }
    let threads = threads.withLock { threads in
      defer { threads = [] }
      return threads
    }
    // They are destroyed without a lock: what a job holds may do anything when it goes.
    _ = work.queue.withLock { $0.removeWaiting() }
    for _ in threads { work.wakes.signal() }
    for thread in threads { thread.join() }
  }
}
