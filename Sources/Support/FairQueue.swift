public import DequeModule

/// A queue of jobs for a number of threads that is fair between clients: they take turns, so that a client's hundred
/// jobs do not delay another's single one. It only decides; the caller runs the jobs.
///
/// The jobs of one client never take all threads, unless there is only one, and at most half of them while another
/// client waits: a long job cannot be interrupted, and the next client should find a free thread.
///
/// Inlinable, because every write passes through one: a generic type of another module looks its types up at run time.
/// For that the compiler requires the type itself to be usable from inline code too.
@usableFromInline package struct FairQueue<Client: Hashable & Sendable, Job: Sendable>: Sendable {
  @usableFromInline struct Account: Sendable {
    @usableFromInline var waiting: Deque<Job> = []
    @usableFromInline var running = 0

    @inlinable init(_ waiting: Deque<Job>) { self.waiting = waiting }

    @inlinable var isIdle: Bool { running == 0 && waiting.isEmpty }
  }

  @usableFromInline let threads: Int
  @usableFromInline let limit: ShareLimit
  @usableFromInline var accounts: [Client: Account] = [:]
  /// The clients that have jobs waiting, in the order of their turns.
  @usableFromInline var turns: Deque<Client> = []
  /// The capacity of a line of jobs that was removed, for the next client's line. Growing each line from nothing took
  /// two per cent of a write's processor time.
  @usableFromInline var spare: Deque<Job> = []
  /// The number of waiting jobs.
  @usableFromInline package internal(set) var waitingCount = 0
  /// The number of running jobs.
  @usableFromInline package internal(set) var runningCount = 0

  /// Creates a queue for a number of threads with at most `limit` waiting jobs, at most `limitPerClient` of them from
  /// one client, and fewer while others wait: see `ShareLimit`.
  @inlinable package init(threads: Int, limit: Int, limitPerClient: Int) {
    self.threads = threads
    self.limit = ShareLimit(total: limit, perClient: limitPerClient)
  }

  /// The number of clients that have jobs waiting.
  @inlinable package var waitingClientCount: Int { turns.count }
  /// The client whose turn it is; nil if no job waits.
  @inlinable package var firstClient: Client? { turns.first }

  /// Returns true if a condition holds for all clients that have jobs waiting.
  @inlinable package func allWaitingClients(_ isSo: (Client) -> Bool) -> Bool { turns.allSatisfy(isSo) }

  /// The maximum number of jobs in a line whose capacity is kept.
  @inlinable static var spareJobs: Int { 256 }

  /// True if no client has a job waiting or running.
  @inlinable package var isIdle: Bool { accounts.isEmpty }

  /// Returns true if one more job of a client may wait.
  @inlinable package func hasRoom(for client: Client) -> Bool {
    limit.refusal(of: 1, held: accounts[client]?.waiting.count ?? 0, total: waitingCount) == nil
  }

  /// Adds a job. Returns false, without adding it, if too many jobs wait, of all clients or of this one.
  @inlinable package mutating func enqueue(_ job: Job, of client: Client) -> Bool {
    guard hasRoom(for: client) else { return false }
    if accounts[client]?.waiting.isEmpty ?? true { turns.append(client) }
    if accounts[client] == nil {
      accounts[client] = Account(spare)
      spare = []
    }
    accounts[client]?.waiting.append(job)
    waitingCount += 1
    return true
  }

  /// Takes the next job, which counts as running until it is `finish`ed; nil if none may run now. Clients whose next
  /// job is not `isAllowed` miss their turns.
  @inlinable package mutating func next(
    of isAllowed: (Client, Job) -> Bool = { _, _ in true }
  ) -> (job: Job, client: Client)? {
    guard let turn = nextTurn(of: isAllowed) else { return nil }
    let client = turns.remove(at: turn)
    guard let job = accounts[client]?.waiting.popFirst() else { return nil }
    accounts[client]?.running += 1
    waitingCount -= 1
    runningCount += 1
    if accounts[client]?.waiting.isEmpty == false { turns.append(client) }
    return (job, client)
  }

  /// True if a job may run now.
  @inlinable package var hasNext: Bool { nextTurn { _, _ in true } != nil }

  @inlinable func nextTurn(of isAllowed: (Client, Job) -> Bool) -> Int? {
    guard runningCount < threads else { return nil }
    let share = max(1, turns.count > 1 ? threads / 2 : threads - 1)
    return turns.firstIndex { client in
      guard let account = accounts[client], account.running < share else { return false }
      return account.waiting.first.map { isAllowed(client, $0) } ?? false
    }
  }

  /// Ends a running job of a client.
  @inlinable package mutating func finish(_ client: Client) {
    runningCount -= 1
    accounts[client]?.running -= 1
    forgetIfIdle(client)
  }

  /// Removes and returns those of the `most` oldest jobs of a client that are no longer wanted.
  @inlinable package mutating func removeUnwanted(of client: Client, most: Int, isUnwanted: (Job) -> Bool) -> [Job] {
    guard var account = accounts[client] else { return [] }
    var (kept, unwanted): ([Job], [Job]) = ([], [])
    let oldest = account.waiting.prefix(most)
    for job in oldest {
      if isUnwanted(job) { unwanted.append(job) } else { kept.append(job) }
    }
    account.waiting.replaceSubrange(..<oldest.endIndex, with: kept)
    waitingCount -= unwanted.count
    if account.waiting.isEmpty { turns.removeAll { $0 == client } }
    accounts[client] = account
    forgetIfIdle(client)
    return unwanted
  }

  /// Removes and returns all waiting jobs.
  @inlinable package mutating func removeWaiting() -> [Job] {
    var jobs: [Job] = []
    for client in turns {
      guard var line = accounts[client]?.waiting else { continue }
      accounts[client]?.waiting = []
      jobs += line
      line.removeAll(keepingCapacity: line.count <= Self.spareJobs)
      spare = line
      forgetIfIdle(client)
    }
    turns = []
    waitingCount = 0
    return jobs
  }

  @inlinable mutating func forgetIfIdle(_ client: Client) {
    if accounts[client]?.isIdle ?? false { accounts[client] = nil }
  }
}
