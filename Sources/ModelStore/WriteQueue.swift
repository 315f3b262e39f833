import Scheduling

/// The writes that wait for the writer, which takes them by batches. Clients take turns, and while several write, none
/// fills the batches that the others wait for: what it puts into one beyond its share, it owes, and misses as many of
/// the next. Where nobody else has something to write, it has a batch to itself meanwhile, of one write, so that
/// those who come do not wait long.
struct WriteQueue<Write: Sendable>: Sendable {
  /// One part in so many of a batch is a client's share.
  private static var shares: Int { 128 }
  /// For so many batches after a change of clients there are several.
  private static var companyBatches: Int { 64 }

  private var waiting: FairQueue<Int, Write>
  private let shareBytes: Int
  /// What the clients have had in bytes, of which each batch takes a share away.
  private var had: [Int: Int] = [:]
  private var lastClient: Int?
  private var companyLeft = 0
  /// Whether the batch under way has something, and whether it is to have no more.
  private var batch = (isEmpty: true, isClosed: false)
  /// Whether the writer is about to look.
  var isScheduled = false

  init(_ limits: StoreLimits) {
    waiting = FairQueue(threads: 1, limit: limits.queuedWrites, limitPerClient: limits.queuedWritesPerClient)
    shareBytes = max(1, limits.batchBytes / Self.shares)
  }

  /// How many wait.
  var count: Int { waiting.waitingCount }

  /// Takes in a client's write; false where too many wait already, of all clients or of this one.
  mutating func enqueue(_ write: Write, of client: Int) -> Bool { waiting.enqueue(write, of: client) }

  /// A batch begins, which has nothing yet.
  mutating func beginBatch() {
    batch = (isEmpty: true, isClosed: false)
    companyLeft = max(0, companyLeft - 1)
    guard !had.isEmpty else { return }
    had = companyLeft == 0 ? [:] : had.compactMapValues { $0 > shareBytes ? $0 - shareBytes : nil }
  }

  /// The next write of the batch; nil where the batch is to have no more.
  mutating func next() -> (write: Write, client: Int)? {
    guard !batch.isClosed else { return nil }
    let (had, share) = (had, companyLeft > 0 ? shareBytes : .max)
    var next = waiting.next { had[$0, default: 0] < share }
    if next == nil, batch.isEmpty {
      next = waiting.next()
      batch.isClosed = true
    }
    guard let (write, client) = next else { return nil }
    waiting.finish(client)
    batch.isEmpty = false
    if let lastClient, lastClient != client { companyLeft = Self.companyBatches }
    lastClient = client
    return (write, client)
  }

  /// Counts what the batch got of a client.
  mutating func count(_ byteCount: Int, of client: Int) {
    if companyLeft > 0 { had[client, default: 0] += byteCount }
  }
}
