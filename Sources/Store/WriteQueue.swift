import Glibc
import Support

/// The writes that wait for the writer, which takes them by batches. Clients take turns, and while several write, none
/// fills the batches that the others wait for: what it puts into one beyond its share, it owes, and misses as many of
/// the next. Where nobody else has something to write, it has a batch to itself meanwhile, of one write, so that
/// those who come do not wait long. A write counts the memory that it was made into where that is more than its bytes,
/// and afterwards the time that it took the writer where that is more than its bytes stand for; a client whose writes
/// are slow has no more of them in a batch than the others can wait for.
struct WriteQueue<Write: Sendable>: Sendable {
  private struct Entry: Sendable {
    let write: Write
    let bytes: Int
  }

  /// One part in so many of a batch is a client's share.
  private static var shares: Int { 128 }
  /// For so many batches after a change of clients there are several.
  private static var companyBatches: Int { 64 }
  /// A client that is alone has no more than so many batches at once.
  private static var aloneBatches: Int { 2 }
  /// What the smallest write counts: it takes the writer about as long as so many bytes more of a large one.
  private static var leastBytes: Int { 1_024 }
  /// What a microsecond of the writer counts: it takes small writes at about this pace.
  private static var bytesPerMicrosecond: Int { 80 }
  /// From so many microseconds on a write is slow.
  private static var slowMicroseconds: Int { 500 }
  /// The slow writes of a batch together take no longer, unless there is only one.
  private static var batchMicroseconds: Int { 50_000 }
  /// The most clients of slow writes that are remembered; with one more, all are forgotten.
  private static var slowClients: Int { 1_000 }

  private var waiting: FairQueue<Int, Entry>
  private var waitingBytes = 0
  private let batchBytes: Int
  private let shareBytes: Int
  /// What the clients have had in bytes, of which each batch takes a share away.
  private var had: [Int: Int] = [:]
  /// How long a write took lately, in microseconds, of the clients whose writes are slow.
  private var paces: [Int: Int] = [:]
  /// What the last batch has of each client.
  private var lastBatch: [Int: (writes: Int, bytes: Int)] = [:]
  private var lastClient: Int?
  private var companyLeft = 0
  /// Whether the writer is about to look.
  var isScheduled = false

  init(_ limits: StoreLimits) {
    waiting = FairQueue(threads: 1, limit: limits.queuedWrites, limitPerClient: limits.queuedWritesPerClient)
    batchBytes = limits.batchBytes
    shareBytes = max(1, limits.batchBytes / Self.shares)
  }

  /// How many wait.
  var count: Int { waiting.waitingCount }

  /// Whether what waits can wait for a client's write to go with: only the store's own writes do, and clients have
  /// written lately.
  var canWait: Bool {
    companyLeft > 0 && waiting.waitingClientCount == 1 && waiting.firstClient == Store.ownClient
  }

  /// How many microseconds those that wait can wait for others' writes to go first: an eighth of what the next of them
  /// takes, while clients have written lately and only clients of slow writes wait; 0 otherwise.
  var slowPatience: Int {
    guard companyLeft > 0, !paces.isEmpty else { return 0 }
    var least = Int.max
    let areSlow = waiting.allWaitingClients { client in
      guard let pace = paces[client] else { return false }
      least = min(least, pace)
      return true
    }
    return areSlow && least < .max ? min(least, Self.batchMicroseconds) / 8 : 0
  }

  /// Takes in a client's write, of about so many bytes; false where too many wait already, of all clients or of this
  /// one.
  mutating func enqueue(_ write: Write, bytes: Int, of client: Int) -> Bool {
    let entry = Entry(write: write, bytes: max(bytes, Self.leastBytes))
    guard waiting.enqueue(entry, of: client) else { return false }
    waitingBytes += entry.bytes
    return true
  }

  /// All that waits.
  mutating func takeAll() -> [Write] {
    waitingBytes = 0
    return waiting.removeWaiting().map(\.write)
  }

  /// The next batch; empty where nothing waits.
  mutating func takeBatch() -> [Write] {
    companyLeft = max(0, companyLeft - 1)
    let isAlone =
      companyLeft == 0 && waiting.waitingClientCount == 1 && waiting.firstClient == lastClient ?? waiting.firstClient
    // A client that is alone has all that there is, at once, unless that is so much that one who comes would wait long.
    if isAlone, waitingBytes <= Self.aloneBatches * batchBytes, paces[waiting.firstClient ?? Store.ownClient] == nil {
      lastClient = waiting.firstClient
      had = [:]
      let bytes = waitingBytes
      let batch = takeAll()
      lastBatch = lastClient.map { [$0: (batch.count, bytes)] } ?? [:]
      return batch
    }
    let paces = paces
    var had = had.compactMapValues { $0 > shareBytes ? $0 - shareBytes : nil }
    var (batch, bytes, microseconds): ([Write], Int, Int) = ([], 0, 0)
    lastBatch.removeAll(keepingCapacity: true)
    while bytes < batchBytes {
      let next =
        waiting.next { client, _ in
          (isAlone || had[client, default: 0] < shareBytes)
            && (batch.isEmpty || microseconds + (paces[client] ?? 0) <= Self.batchMicroseconds)
        }
        // One write of a client that owes, where no other has any.
        ?? (batch.isEmpty ? waiting.next() : nil)
      guard let (entry, client) = next else { break }
      waiting.finish(client)
      if let lastClient, lastClient != client { companyLeft = Self.companyBatches }
      lastClient = client
      had[client, default: 0] += entry.bytes
      bytes += entry.bytes
      microseconds += paces[client] ?? 0
      waitingBytes -= entry.bytes
      batch.append(entry.write)
      let counted = lastBatch[client] ?? (0, 0)
      lastBatch[client] = (counted.writes + 1, counted.bytes + entry.bytes)
    }
    self.had = isAlone ? [:] : had
    return batch
  }

  /// Takes in how long the writer took for the last batch, in microseconds by client. Clients of slow writes owe what
  /// is more than their bytes stand for, up to a whole batch.
  mutating func charge(_ microseconds: [Int: Int]) {
    for (client, time) in microseconds {
      guard let (writes, bytes) = lastBatch[client] else { continue }
      let more = time * Self.bytesPerMicrosecond - bytes
      if more > 0, time / writes >= Self.slowMicroseconds {
        had[client] = max(had[client] ?? 0, min((had[client] ?? 0) + more, batchBytes))
      }
      // Slow at once, and quick again bit by bit.
      let pace = max(time / writes, (paces[client] ?? 0) * 7 / 8)
      paces[client] = pace >= Self.slowMicroseconds ? pace : nil
    }
    if paces.count > Self.slowClients { paces = [:] }
  }
}

/// How long the writer waits for more writes before it commits those that wait.
///
/// A crowd that was answered together comes back together, and the first of it would have a sync of its own while all
/// the others wait for the next (PostgreSQL's `commit_delay`): a fraction of what a sync takes, and only where there
/// was a crowd. The store's own writes wait a little longer for a client's to go with: a sync of theirs would have
/// clients wait that come meanwhile. So do slow writes, since who comes just after one has begun waits for all of it.
struct WriterPatience: Sendable {
  /// How many writes the last batch had, and how long its sync took.
  var lastBatchCount = 0
  var lastSync = Duration.zero

  /// For the store's own writes.
  private static let own = Duration.milliseconds(5)
  /// Between two looks at the queue, in microseconds.
  private static let pause: UInt32 = 50

  /// Waits as long as it is of use. `looking` has a question answered by the queue as it is then.
  func wait<Write>(_ looking: ((WriteQueue<Write>) -> Bool) -> Bool) {
    Self.wait(Self.own) { looking { $0.canWait } }
    var microseconds = 0
    _ = looking {
      microseconds = $0.slowPatience
      return true
    }
    if microseconds > 0 { Self.wait(.microseconds(microseconds)) { looking { $0.slowPatience > 0 } } }
    let (expected, patience) = (lastBatchCount * 3 / 4, min(lastSync / 4, .milliseconds(1)))
    guard expected > 1, patience > .microseconds(100) else { return }
    Self.wait(patience) { looking { (1..<expected).contains($0.count) } }
  }

  private static func wait(_ time: Duration, while isOfUse: () -> Bool) {
    let deadline = ContinuousClock.now + time
    while isOfUse(), .now < deadline { usleep(pause) }
  }
}
