import Scheduling

/// The writes that wait for the writer, which takes them by batches. Clients take turns, and while several write, none
/// fills the batches that the others wait for: what it puts into one beyond its share, it owes, and misses as many of
/// the next. Where nobody else has something to write, it has a batch to itself meanwhile, of one write, so that
/// those who come do not wait long. A write counts the memory that it was made into where that is more than its bytes.
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

  private var waiting: FairQueue<Int, Entry>
  private var waitingBytes = 0
  private let batchBytes: Int
  private let shareBytes: Int
  /// What the clients have had in bytes, of which each batch takes a share away.
  private var had: [Int: Int] = [:]
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

  /// Takes in a client's write, of about so many bytes; false where too many wait already, of all clients or of this
  /// one.
  mutating func enqueue(_ write: Write, bytes: Int, of client: Int) -> Bool {
    let entry = Entry(write: write, bytes: max(bytes, Self.leastBytes))
    guard waiting.enqueue(entry, of: client) else { return false }
    waitingBytes += entry.bytes
    return true
  }

  /// The next batch; empty where nothing waits.
  mutating func takeBatch() -> [Write] {
    companyLeft = max(0, companyLeft - 1)
    let isAlone =
      companyLeft == 0 && waiting.waitingClientCount == 1 && waiting.firstClient == lastClient ?? waiting.firstClient
    // A client that is alone has all that there is, at once, unless that is so much that one who comes would wait long.
    if isAlone, waitingBytes <= Self.aloneBatches * batchBytes {
      lastClient = waiting.firstClient
      had = [:]
      waitingBytes = 0
      return waiting.removeWaiting().map(\.write)
    }
    var had = had.compactMapValues { $0 > shareBytes ? $0 - shareBytes : nil }
    var (batch, bytes): ([Write], Int) = ([], 0)
    while bytes < batchBytes {
      // One write of a client that owes, where no other has any.
      let next =
        waiting.next { client, _ in isAlone || had[client, default: 0] < shareBytes }
        ?? (batch.isEmpty ? waiting.next() : nil)
      guard let (entry, client) = next else { break }
      waiting.finish(client)
      if let lastClient, lastClient != client { companyLeft = Self.companyBatches }
      lastClient = client
      had[client, default: 0] += entry.bytes
      bytes += entry.bytes
      waitingBytes -= entry.bytes
      batch.append(entry.write)
    }
    self.had = isAlone ? [:] : had
    return batch
  }
}
