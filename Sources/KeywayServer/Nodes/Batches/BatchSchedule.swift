import HTTPServer
import Support

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
