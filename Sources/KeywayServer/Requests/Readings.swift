import Dispatch
package import HTTPServer
import KeyValueModel
import Support
import Synchronization

/// The way of a request that reads: what takes little is answered at once, on the thread of its connection; what takes
/// more is given up after that little, and begun anew in its turn on a thread of the pool.
///
/// Most requests read one object or one key. To hand each of them to another thread would cost more than they do; and
/// which of them take long cannot be told beforehand.
package final class Readings: Sendable {
  /// Works out an answer within a budget. It may be called a second time, then with a larger one, and on any thread.
  package typealias Reading = @Sendable (_ budget: ReadingBudget) throws(Problem) -> Response

  private let pool: ReadingPool
  private let ledger: MemoryLedger
  private let limits: RequestLimits
  private let abandoned = Atomic<Int>(0)
  private let refused = Atomic<Int>(0)

  /// The way of requests within these limits. What large answers hold is reserved in the ledger.
  init(_ limits: RequestLimits, ledger: MemoryLedger) {
    self.limits = limits
    self.ledger = ledger
    pool = ReadingPool(limits)
  }

  /// Answers a request with what `reading` gives. `isLong` says that it is known to take long.
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

  /// Does something long for a client, which waits for `completion`, in its turn on a thread of the pool. Where too
  /// much waits already, or the client has left meanwhile, it is not done, and `completion` has an answer.
  package func perform(for client: ClientAddress, _ completion: Completion, _ job: @escaping @Sendable () -> Void) {
    let isAccepted = pool.submit(for: client) { [self] in
      // A crowd that came and went must not be worked for.
      guard !completion.isAbandoned else {
        abandoned.add(1, ordering: .relaxed)
        return completion.respond(Problem(.overloaded, "the client has left").response)
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

  /// The answer to a client that waits for it.
  private func response(to client: ClientAddress, _ completion: Completion, _ reading: Reading) -> Response {
    let budget = ReadingBudget(limits, of: client, in: ledger) { completion.isAbandoned }
    do throws(Problem) {
      defer { if budget.work.stop == .abandoned { abandoned.add(1, ordering: .relaxed) } }
      let response = try reading(budget)
      try budget.check()
      return budget.settled(response)
    } catch {
      return error.judged(by: budget.cursor).response
    }
  }

  /// Ends the work. Those who wait have been answered before.
  func stop() { pool.stop() }

  /// Writes down what there is to count.
  func export(to registry: PrometheusRegistry) {
    registry.set(.readingsRunning, to: Double(pool.runningCount))
    registry.set(.readingsWaiting, to: Double(pool.waitingCount))
    registry.set(.readingsAbandoned, to: Double(abandoned.load(ordering: .relaxed)))
    registry.set(.readingsRefused, to: Double(refused.load(ordering: .relaxed)))
  }
}

/// The threads on which answers are worked out that take long, so that the threads of connections are free for those
/// that do not: for health, for writes, and for the next request.
package final class ReadingPool: Sendable {
  /// Something to do for a client.
  package typealias Job = @Sendable () -> Void

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
  package init(_ limits: RequestLimits) {
    let count = limits.threads > 0 ? limits.threads : max(2, SystemThread.coreCount)
    let work = Work(
      FairQueue<ClientAddress, Job>(threads: count, limit: limits.waiting, limitPerClient: limits.waitingPerClient))
    self.work = work
    threads = Locked((0..<count).compactMap { _ in SystemThread("keyway-read") { work.run() } })
  }

  deinit { stop() }

  /// Has a job done in its turn. False where too much waits already, of all clients or of this one.
  package func submit(for client: ClientAddress, _ job: @escaping Job) -> Bool {
    guard threads.withLock({ !$0.isEmpty }), work.queue.withLock({ $0.enqueue(job, of: client) }) else { return false }
    work.wakes.signal()
    return true
  }

  /// How many jobs wait.
  package var waitingCount: Int { work.queue.withLock { $0.waitingCount } }

  /// How many jobs are being done.
  package var runningCount: Int { work.queue.withLock { $0.runningCount } }

  /// Lets go of what waits, and returns when what runs has ended. The first call counts.
  package func stop() {
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
