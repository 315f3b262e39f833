import Dispatch
import HTTPServer
import KeywayServer
import Support

/// The threads that send jobs in batches, as a `BatchSchedule` decides. One thread sends a batch, waits for its answer
/// and distributes it, so that a job needs no thread of its own. A thread is created on demand and stays.
final class BatchThreads<Job: Sendable>: Sendable {
  private struct State {
    var schedule: BatchSchedule<Job>
    var threads: [SystemThread] = []
    /// The number of threads that wait, and of those that were woken and do not run yet.
    var waiting = 0
    var woken = 0
    /// True if one of the waiting threads has a deadline at which it checks for delayed batches.
    var isWatched = false
    var isStopped = false
  }

  /// The state that the threads share. It outlives the object as long as one of them runs.
  private final class Work: Sendable {
    let state: Locked<State>
    let limit: Int
    let wakes = DispatchSemaphore(value: 0)
    let send: @Sendable ([Job]) -> Void
    let now: @Sendable () -> UInt64

    init(
      _ limits: BatchSchedule<Job>.Limits, now: @escaping @Sendable () -> UInt64,
      send: @escaping @Sendable ([Job]) -> Void
    ) {
      state = Locked(State(schedule: BatchSchedule(limits)))
      limit = limits.connections
      self.now = now
      self.send = send
    }

    /// Wakes or creates a thread if there is something to do. Call it under the lock. Returns false if there is no
    /// thread at all.
    func call(_ state: inout State) -> Bool {
      guard state.woken == 0, let time = state.schedule.begins(at: now()), time == 0 || !state.isWatched else {
        return true
      }
      if state.waiting > 0 {
        state.woken += 1
        wakes.signal()
      } else if state.threads.count < limit {
        guard let thread = SystemThread("keyway-batch", { self.run() }) else { return !state.threads.isEmpty }
        state.woken += 1
        state.threads.append(thread)
      }
      return true
    }

    /// Runs the loop of one thread.
    func run() {
      state.withLock { $0.woken -= 1 }
      while true {
        let step = state.withLock { state -> BatchSchedule<Job>.Step? in
          guard !state.isStopped else { return nil }
          let step = state.schedule.next(at: now())
          switch step {
          case .send: _ = call(&state)
          case .wait(let time):
            state.waiting += 1
            if time != nil { state.isWatched = true }
          }
          return step
        }
        switch step {
        case .send(let batch)?:
          send(batch.jobs.map(\.job))
          state.withLock { $0.schedule.finish(batch) }
        case .wait(let time)?: wait(until: time)
        case nil: return
        }
      }
    }

    private func wait(until time: UInt64?) {
      let end = time.map { DispatchTime.now() + .nanoseconds(Int($0 - min($0, now()))) }
      let isWoken = wakes.wait(timeout: end ?? .distantFuture) == .success
      state.withLock { state in
        state.waiting -= 1
        if time != nil { state.isWatched = false }
        // A thread may be woken just as it reaches its deadline.
        if isWoken || wakes.wait(timeout: .now()) == .success, state.woken > 0 { state.woken -= 1 }
      }
    }
  }

  private let work: Work

  /// Creates the object without a thread. `send` is called on one of the threads with the jobs of a batch, and returns
  /// when all are done.
  init(
    _ limits: BatchSchedule<Job>.Limits, now: @escaping @Sendable () -> UInt64 = { UInt64(SystemClock.nanoseconds) },
    send: @escaping @Sendable ([Job]) -> Void
  ) {
    work = Work(limits, now: now, send: send)
  }

  deinit { stop() }

  /// Queues a job for sending. Returns false if too many jobs wait, of all clients or of this one.
  func submit(_ job: Job, bytes: Int, of client: ClientAddress) -> Bool {
    work.state.withLock { state in
      guard !state.isStopped, state.schedule.enqueue(job, bytes: bytes, of: client) else { return false }
      if work.call(&state) { return true }
      // The system could not create the first thread, so this is the only job that waits.
      _ = state.schedule.removeWaiting()
      return false
    }
  }

  /// The number of jobs that wait or are being sent.
  var count: Int { work.state.withLock { $0.schedule.waitingCount + $0.schedule.runningCount } }

  /// Drops the waiting jobs, calls `cut` to cancel those under way, and returns when they have ended. Only the first
  /// call has an effect.
  func stop(_ cut: () -> Void = {}) {
    let (threads, jobs) = work.state.withLock { state in
      state.isStopped = true
      defer { state.threads = [] }
      return (state.threads, state.schedule.removeWaiting())
    }
    // Destroyed outside the lock, since the deinitializer of what a job holds may do anything.
    withExtendedLifetime(jobs) {}
    cut()
    for _ in threads { work.wakes.signal() }
    for thread in threads { thread.join() }
  }
}

/// The schedule of the writes that wait: decides which go next and when, and has no side effects.
///
/// Waiting jobs are sent at once while fewer than two batches are under way, and are collected otherwise: the second
/// batch is collected while the other node commits the first. A batch without an answer for some time no longer counts,
/// so that a delayed batch does not delay others, within the number of connections. Clients take turns.
struct BatchSchedule<Job: Sendable>: Sendable {
  /// The limits of a schedule.
  struct Limits: Sendable {
    /// The maximum number of jobs in a batch.
    var jobs = WriteBatch.mostRequests
    /// The maximum size of a batch, in bytes.
    var bytes = WriteBatch.mostBytes
    /// The maximum number of batches under way.
    var connections: Int
    /// The maximum number of jobs that wait.
    var waiting: Int
    /// The maximum number of waiting jobs of one client.
    var waitingPerClient: Int
  }

  /// Jobs that are sent together.
  struct Batch: Sendable {
    let number: Int
    let jobs: [(job: Job, client: ClientAddress)]
  }

  /// The next step of a thread.
  enum Step: Sendable {
    case send(Batch)
    /// Wait until this time, unless a job arrives or a batch ends; nil means without a limit.
    case wait(until: UInt64?)
  }

  private struct Waiting: Sendable {
    let job: Job
    let byteCount: Int
  }

  /// The number of batches under way from which on jobs are collected.
  static var usual: Int { 2 }
  /// The time without an answer after which a batch no longer counts, in nanoseconds.
  static var patience: UInt64 { 20_000_000 }

  private let limits: Limits
  private var queue: FairQueue<ClientAddress, Waiting>
  /// The start times of the batches under way, by number.
  private var begun: [Int: UInt64] = [:]
  private var lastNumber = 0

  /// Creates an empty schedule.
  init(_ limits: Limits) {
    self.limits = limits
    queue = FairQueue(
      threads: limits.connections * limits.jobs, limit: limits.waiting, limitPerClient: limits.waitingPerClient)
  }

  /// The number of jobs that wait.
  var waitingCount: Int { queue.waitingCount }
  /// The number of jobs that were sent and are not finished.
  var runningCount: Int { queue.runningCount }
  /// The number of batches under way.
  var batchCount: Int { begun.count }

  /// Adds a job. Returns false if too many wait.
  mutating func enqueue(_ job: Job, bytes: Int, of client: ClientAddress) -> Bool {
    queue.enqueue(Waiting(job: job, byteCount: bytes), of: client)
  }

  /// Returns the time when a batch may be sent: 0 for at once, nil if not before a batch ends or a job arrives.
  func begins(at now: UInt64) -> UInt64? {
    guard queue.hasNext, begun.count < limits.connections else { return nil }
    let ends = begun.values.map { $0 + Self.patience }.filter { $0 > now }
    return ends.count < Self.usual ? 0 : ends.min()
  }

  /// Returns the next step at a time, and counts a batch that it returns as under way.
  mutating func next(at now: UInt64) -> Step {
    guard let time = begins(at: now), time == 0 else { return .wait(until: begins(at: now)) }
    var jobs: [(job: Job, client: ClientAddress)] = []
    var rest = limits.bytes
    while jobs.count < limits.jobs, let next = queue.next(of: { [rest] in jobs.isEmpty || $1.byteCount <= rest }) {
      jobs.append((next.job.job, next.client))
      rest -= next.job.byteCount
    }
    guard !jobs.isEmpty else { return .wait(until: nil) }
    lastNumber += 1
    begun[lastNumber] = now
    return .send(Batch(number: lastNumber, jobs: jobs))
  }

  /// Removes a finished batch.
  mutating func finish(_ batch: Batch) {
    guard begun.removeValue(forKey: batch.number) != nil else { return assertionFailure("the batch is not under way") }
    for job in batch.jobs { queue.finish(job.client) }
  }

  /// Removes and returns all jobs that wait.
  mutating func removeWaiting() -> [Job] { queue.removeWaiting().map(\.job) }
}
