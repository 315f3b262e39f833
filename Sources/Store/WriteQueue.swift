import Glibc
import Support

/// The writes that wait for the writer, which takes them in batches.
///
/// Clients are served round-robin. While several write, none fills the batches that the others wait for: a client that
/// puts more than its share into a batch owes the excess, and is left out of the next batches until that is paid off.
/// If no other client has anything to write, it gets batches of one write meanwhile, so that newly arriving clients do
/// not wait long. A write counts by the memory that it takes, if that exceeds its bytes, and afterwards by the time
/// that it took the writer, if that exceeds what its bytes stand for. A client with slow writes has no more of them in
/// a batch than the others can wait for.
struct WriteQueue<Write: Sendable>: Sendable {
  private struct Entry: Sendable {
    let write: Write
    let bytes: Int
  }

  /// The number of shares in a batch, of which a client has one.
  private static var shares: Int { 128 }
  /// The number of batches after a change of clients for which several are considered active.
  private static var companyBatches: Int { 64 }
  /// The maximum size of what a single active client gets at once, in batches.
  private static var aloneBatches: Int { 2 }
  /// The size by which the smallest write counts, in bytes: it takes the writer about as long as so many more bytes of
  /// a large one.
  private static var leastBytes: Int { 1_024 }
  /// The number of bytes by which a microsecond of the writer counts: about its pace for small writes.
  private static var bytesPerMicrosecond: Int { 80 }
  /// The number of microseconds from which a write is slow.
  private static var slowMicroseconds: Int { 500 }
  /// The maximum time of the slow writes of a batch together, in microseconds, unless there is only one.
  private static var batchMicroseconds: Int { 50_000 }
  /// The maximum number of remembered clients with slow writes; one more, and all are forgotten.
  private static var slowClients: Int { 1_000 }

  private var waiting: FairQueue<Int, Entry>
  private var waitingBytes = 0
  private let batchBytes: Int
  private let shareBytes: Int
  /// The bytes that each client has used, from which each batch subtracts a share.
  private var had: [Int: Int] = [:]
  /// The recent time of a write, in microseconds, for each client with slow writes.
  private var paces: [Int: Int] = [:]
  /// The number and size of each client's writes in the last batch.
  private var lastBatch: [Int: (writes: Int, bytes: Int)] = [:]
  private var lastClient: Int?
  private var companyLeft = 0
  /// True if the writer is about to take the next batch.
  var isScheduled = false

  init(_ limits: StoreLimits) {
    waiting = FairQueue(threads: 1, limit: limits.queuedWrites, limitPerClient: limits.queuedWritesPerClient)
    batchBytes = limits.batchBytes
    shareBytes = max(1, limits.batchBytes / Self.shares)
  }

  /// The number of waiting writes.
  var count: Int { waiting.waitingCount }

  /// True if the waiting writes can wait to be committed together with a client's: only the store's own writes wait,
  /// and clients have written recently.
  var canWait: Bool {
    companyLeft > 0 && waiting.waitingClientCount == 1 && waiting.firstClient == Store.ownClient
  }

  /// The time for which the waiting writes can wait to let others' writes go first, in microseconds: an eighth of the
  /// time of the next of them, if clients have written recently and only clients with slow writes wait; 0 otherwise.
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

  /// Adds a client's write, of about so many bytes. Returns false if too many writes already wait, of all clients or of
  /// this one.
  mutating func enqueue(_ write: Write, bytes: Int, of client: Int) -> Bool {
    let entry = Entry(write: write, bytes: max(bytes, Self.leastBytes))
    guard waiting.enqueue(entry, of: client) else { return false }
    waitingBytes += entry.bytes
    return true
  }

  /// Removes and returns all waiting writes.
  mutating func takeAll() -> [Write] {
    waitingBytes = 0
    return waiting.removeWaiting().map(\.write)
  }

  /// Removes and returns the next batch; empty if nothing waits.
  mutating func takeBatch() -> [Write] {
    companyLeft = max(0, companyLeft - 1)
    let isAlone =
      companyLeft == 0 && waiting.waitingClientCount == 1 && waiting.firstClient == lastClient ?? waiting.firstClient
    // A single active client gets everything at once, unless that is so much that a newly arriving client would wait
    // long.
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
        // One write of a client that owes, if no other client has any.
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

  /// Records the time that the writer took for the last batch, in microseconds by client. Clients with slow writes owe
  /// the part that exceeds what their bytes stand for, up to a whole batch.
  mutating func charge(_ microseconds: [Int: Int]) {
    for (client, time) in microseconds {
      guard let (writes, bytes) = lastBatch[client] else { continue }
      let more = time * Self.bytesPerMicrosecond - bytes
      if more > 0, time / writes >= Self.slowMicroseconds {
        had[client] = max(had[client] ?? 0, min((had[client] ?? 0) + more, batchBytes))
      }
      // A client counts as slow at once, and recovers gradually.
      let pace = max(time / writes, (paces[client] ?? 0) * 7 / 8)
      paces[client] = pace >= Self.slowMicroseconds ? pace : nil
    }
    if paces.count > Self.slowClients { paces = [:] }
  }
}

/// The decision for how long the writer waits for more writes before it commits the waiting ones.
///
/// Clients that got their responses together come back together, and the first of them would get a sync of its own
/// while all others wait for the next one (compare PostgreSQL's `commit_delay`). The writer waits a fraction of a
/// sync's time, and only if the last batch was large. The store's own writes wait slightly longer for a client's write
/// to join: otherwise clients that arrive during their sync would have to wait for it. Slow writes wait too, since a
/// client that arrives just after one has begun waits for all of it.
struct BatchDelay: Sendable {
  /// The number of writes in the last batch, and the duration of its sync.
  var lastBatchCount = 0
  var lastSync = Duration.zero

  /// The maximum wait of the store's own writes.
  private static let own = Duration.milliseconds(5)
  /// The interval between two checks of the queue, in microseconds.
  private static let pause: UInt32 = 50

  /// Waits as long as it is useful. `looking` evaluates a condition on the current queue.
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
