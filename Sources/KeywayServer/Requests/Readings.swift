import Dispatch
package import HTTPServer
import KeyValueModel
import Support
import Synchronization

/// Runs requests that read. A short one is answered at once, on the thread of its connection. One that exceeds a small
/// budget is aborted, and repeated in its turn on a thread of the pool.
///
/// Most requests read one object or one key. Handing each of them to another thread would cost more than the read
/// itself, and long ones cannot be recognized beforehand.
package final class Readings: Sendable {
  /// Makes a response within a budget. It may be called a second time, with a larger budget, and on any thread.
  package typealias Reading = @Sendable (_ budget: ReadingBudget) throws(Problem) -> Response

  private let pool: ReadingPool
  private let ledger: MemoryLedger
  private let limits: RequestLimits
  private let abandoned = Atomic<Int>(0)
  private let refused = Atomic<Int>(0)

  /// Creates the readings within these limits. The memory of large responses is reserved in the ledger.
  init(_ limits: RequestLimits, ledger: MemoryLedger) {
    self.limits = limits
    self.ledger = ledger
    pool = ReadingPool(limits)
  }

  /// Responds to a request with the result of `reading`. `isLong` indicates that it is known to take long.
  package func response(
    to request: borrowing Request, isLong: Bool = false, _ reading: @escaping Reading
  ) throws(Problem) -> HandlerResponse {
    if isLong { return deferred(for: request.client, reading) }
    let trial = ReadingBudget(trialOf: limits)
    do throws(Problem) {
      let response = try reading(trial)
      try trial.check()
      return .response(response)
    } catch {
      guard trial.isTrialOver else { throw error.judged(by: trial.cursor) }
      return deferred(for: request.client, reading)
    }
  }

  private func deferred(for client: ClientAddress, _ reading: @escaping Reading) -> HandlerResponse {
    .deferred { [self] completion in
      perform(for: client, completion) { [self] in completion.respond(response(to: client, completion, reading)) }
    }
  }

  /// Runs a long job for a client, which waits for `completion`, in its turn on a thread of the pool. If too many jobs
  /// wait already, or the client has left meanwhile, the job is dropped, and `completion` gets a response.
  package func perform(for client: ClientAddress, _ completion: Completion, _ job: @escaping @Sendable () -> Void) {
    let isAccepted = pool.submit(for: client) { [self] in
      // Clients that have left must not cost work.
      guard !completion.isAbandoned else {
        abandoned.add(1, ordering: .relaxed)
        return completion.respond(.clientClosedRequest)
      }
      job()
    }
    guard !isAccepted else { return }
    refused.add(1, ordering: .relaxed)
    completion.respond(
      Problem(
        .overloaded, "as many requests wait as requests.waiting allows, or a quarter of that for one client; try again"
      ).response)
  }

  /// Returns the response to a waiting client.
  private func response(to client: ClientAddress, _ completion: Completion, _ reading: Reading) -> Response {
    let budget = ReadingBudget(limits, of: client, in: ledger) { completion.isAbandoned }
    do throws(Problem) {
      defer { if budget.work.stop == .abandoned { abandoned.add(1, ordering: .relaxed) } }
      let response = try reading(budget)
      try budget.check()
      return budget.settled(response)
    } catch {
      return budget.work.stop == .abandoned ? .clientClosedRequest : error.judged(by: budget.cursor).response
    }
  }

  /// Stops the threads. The waiting clients have been answered before.
  func stop() { pool.stop() }

  /// Exports the counts to the metrics.
  func export(to registry: PrometheusRegistry) {
    registry.set(.readingsRunning, to: Double(pool.runningCount))
    registry.set(.readingsWaiting, to: Double(pool.waitingCount))
    registry.set(.readingsAbandoned, to: Double(abandoned.load(ordering: .relaxed)))
    registry.set(.readingsRefused, to: Double(refused.load(ordering: .relaxed)))
  }
}

/// The threads for responses that take long, so that the threads of connections are free for the others: for health
/// checks, for writes, and for the next request.
package final class ReadingPool: Sendable {
  /// A job for a client.
  package typealias Job = @Sendable () -> Void

  /// The state that the threads share. It outlives the pool until the last thread has finished its job.
  private final class Work: Sendable {
    let queue: Locked<FairQueue<ClientAddress, Job>>
    let hasStopped = Locked(false)
    /// Signaled for each job that a thread may now run.
    let wakes = DispatchSemaphore(value: 0)

    init(_ queue: FairQueue<ClientAddress, Job>) {
      self.queue = Locked(queue)
    }

    /// The body of each thread.
    func run() {
      // Long work yields to short work: to connections, to the writer and to streams.
      SystemThread.yieldToOthers()
      while true {
        wakes.wait()
        if hasStopped.withLock({ $0 }) { return }
        doAll()
      }
    }

    private func doAll() {
      while let (job, client) = queue.withLock({ $0.next() }) {
        // Two jobs may become runnable at once, if the end of one leaves a single client waiting.
        if queue.withLock({ $0.hasNext }) { wakes.signal() }
        job()
        queue.withLock { $0.finish(client) }
        if hasStopped.withLock({ $0 }) { return }
      }
    }
  }

  private let work: Work
  private let threads: Locked<[SystemThread]>

  /// Starts the threads: `limits.threads`, or one for each core, and at least two.
  package convenience init(_ limits: RequestLimits) {
    self.init(
      "keyway-read", threads: limits.threads > 0 ? limits.threads : max(2, SystemThread.coreCount),
      waiting: limits.waiting, waitingPerClient: limits.waitingPerClient)
  }

  /// Starts threads of a name, fewer if the system has no more, for a queue of at most `waiting` jobs, of which one
  /// client may have `waitingPerClient`.
  init(_ name: String, threads count: Int, waiting: Int, waitingPerClient: Int) {
    let work = Work(FairQueue<ClientAddress, Job>(threads: count, limit: waiting, limitPerClient: waitingPerClient))
    self.work = work
    threads = Locked((0..<count).compactMap { _ in SystemThread(name) { work.run() } })
  }

  deinit { stop() }

  /// Queues a job. Returns false if too many jobs wait already, of all clients or of this one.
  package func submit(for client: ClientAddress, _ job: @escaping Job) -> Bool {
    guard threads.withLock({ !$0.isEmpty }), work.queue.withLock({ $0.enqueue(job, of: client) }) else { return false }
    work.wakes.signal()
    return true
  }

  /// The number of waiting jobs.
  package var waitingCount: Int { work.queue.withLock { $0.waitingCount } }

  /// The number of running jobs.
  package var runningCount: Int { work.queue.withLock { $0.runningCount } }

  /// Drops the waiting jobs, and returns when the running ones have ended. Only the first call has an effect.
  package func stop() {
    work.hasStopped.withLock { $0 = true }
    let threads = threads.withLock { threads in
      defer { threads = [] }
      return threads
    }
    // The jobs are destroyed without the lock, since deinitializers of what they hold may do anything.
    _ = work.queue.withLock { $0.removeWaiting() }
    for _ in threads { work.wakes.signal() }
    for thread in threads { thread.join() }
  }
}
