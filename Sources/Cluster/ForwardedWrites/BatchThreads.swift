import Dispatch
import HTTPServer
import KeywayServer
import Support

/// The threads that send jobs in batches, as a `BatchSchedule` says: one sends a batch, waits for its answer and hands
/// that out, so that a job takes no thread of its own. A thread is made when it is needed, and stays.
final class BatchThreads<Job: Sendable>: Sendable {
  private struct State {
    var schedule: BatchSchedule<Job>
    var threads: [SystemThread] = []
    /// Threads that wait, and those that were woken and have not come yet.
    var waiting = 0
    var woken = 0
    /// Whether one of those that wait has a time at which it looks for what is held up.
    var isWatched = false
    var isStopped = false
  }

  /// What the threads share. It outlives the object as long as one of them has something to do.
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

    /// Has a thread come where there is something for one to do. Under the lock. False where there is no thread at all.
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

    /// What each thread does.
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
        if isWoken, state.woken > 0 { state.woken -= 1 }
      }
    }
  }

  private let work: Work

  /// No thread yet. `send` is called on one of them with the jobs of a batch, and returns when all are done.
  init(
    _ limits: BatchSchedule<Job>.Limits, now: @escaping @Sendable () -> UInt64 = { UInt64(SystemClock.nanoseconds) },
    send: @escaping @Sendable ([Job]) -> Void
  ) {
    work = Work(limits, now: now, send: send)
  }

  deinit { stop() }

  /// Has a job sent, in its turn. False where too many wait, of all clients or of this one.
  func submit(_ job: Job, bytes: Int, of client: ClientAddress) -> Bool {
    work.state.withLock { state in
      guard !state.isStopped, state.schedule.enqueue(job, bytes: bytes, of: client) else { return false }
      if work.call(&state) { return true }
      // The system has no thread for the first; what waits is this one alone.
      _ = state.schedule.removeWaiting()
      return false
    }
  }

  /// How many jobs wait or are being done.
  var count: Int { work.state.withLock { $0.schedule.waitingCount + $0.schedule.runningCount } }

  /// Lets go of what waits, has `cut` end what is under way, and returns when that has ended. The first call counts.
  func stop(_ cut: () -> Void = {}) {
    let (threads, jobs) = work.state.withLock { state in
      state.isStopped = true
      defer { state.threads = [] }
      return (state.threads, state.schedule.removeWaiting())
    }
    // They are destroyed without a lock: what a job holds may do anything when it goes.
    withExtendedLifetime(jobs) {}
    cut()
    for _ in threads { work.wakes.signal() }
    for thread in threads { thread.join() }
  }
}

/// Which of the writes that wait go next, and when: decides, and does nothing by itself.
///
/// What waits goes at once while fewer than two batches are under way, and gathers otherwise: the second gathers while
/// the other node commits the first. A batch that has had no answer for some time no longer counts, so that one that is
/// held up holds up no other; within the number of connections. Clients take turns.
struct BatchSchedule<Job: Sendable>: Sendable {
  /// What is allowed.
  struct Limits: Sendable {
    /// The most jobs of a batch.
    var jobs = WriteBatch.mostRequests
    /// Their most bytes.
    var bytes = WriteBatch.mostBytes
    /// The most batches under way.
    var connections: Int
    /// The most jobs that wait.
    var waiting: Int
    /// Those of one client.
    var waitingPerClient: Int
  }

  /// Jobs that go together.
  struct Batch: Sendable {
    let number: Int
    let jobs: [(job: Job, client: ClientAddress)]
  }

  /// What a thread is to do.
  enum Step: Sendable {
    case send(Batch)
    /// Nothing before this time, unless something comes or ends; nil: nothing.
    case wait(until: UInt64?)
  }

  private struct Waiting: Sendable {
    let job: Job
    let byteCount: Int
  }

  /// So many batches gather nothing behind them.
  static var usual: Int { 2 }
  /// After so many nanoseconds without an answer a batch does not count.
  static var patience: UInt64 { 20_000_000 }

  private let limits: Limits
  private var queue: FairQueue<ClientAddress, Waiting>
  /// When the batches were begun that are under way.
  private var begun: [Int: UInt64] = [:]
  private var lastNumber = 0

  /// Nothing waits.
  init(_ limits: Limits) {
    self.limits = limits
    queue = FairQueue(
      threads: limits.connections * limits.jobs, limit: limits.waiting, limitPerClient: limits.waitingPerClient)
  }

  /// How many jobs wait.
  var waitingCount: Int { queue.waitingCount }
  /// How many jobs were sent and are not finished.
  var runningCount: Int { queue.runningCount }
  /// How many batches are under way.
  var batchCount: Int { begun.count }

  /// Takes in a job. False where too many wait.
  mutating func enqueue(_ job: Job, bytes: Int, of client: ClientAddress) -> Bool {
    queue.enqueue(Waiting(job: job, byteCount: bytes), of: client)
  }

  /// When a batch may be sent: 0 at once, nil not before one ends or something comes.
  func begins(at now: UInt64) -> UInt64? {
    guard queue.hasNext, begun.count < limits.connections else { return nil }
    let ends = begun.values.map { $0 + Self.patience }.filter { $0 > now }
    return ends.count < Self.usual ? 0 : ends.min()
  }

  /// What is to be done at a time.
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

  /// A batch is done.
  mutating func finish(_ batch: Batch) {
    guard begun.removeValue(forKey: batch.number) != nil else { return assertionFailure("the batch is not under way") }
    for job in batch.jobs { queue.finish(job.client) }
  }

  /// Forgets all that wait, and gives them.
  mutating func removeWaiting() -> [Job] { queue.removeWaiting().map(\.job) }
}
