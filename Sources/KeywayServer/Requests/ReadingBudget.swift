package import HTTPServer
package import KeyValueModel

/// What one request that reads may still take: steps, bytes of its answer, and objects in the place of references. On
/// one thread at a time.
package final class ReadingBudget {
  /// What a request may take on the thread of its connection, while others of that thread wait: a few milliseconds.
  private enum Trial {
    static let steps = 20_000
    static let bytes = 64 << 10
  }

  /// The state that is read, once that is known: what the request is refused for is judged by it.
  package var cursor: Cursor?

  /// How much longer an answer may grow until its memory is reserved again.
  private static let reservedAtOnce = 64 << 10

  /// The steps, and what was worked out on the way.
  package let work: ReadingWork
  /// The most bytes of the answer.
  package let byteLimit: Int
  /// Whether it was a trial and was not enough: then the same is done again with all that a request may take.
  package var isTrialOver: Bool { isTrial && (isTooLong || work.stop != nil) }
  private let isTrial: Bool
  private var isTooLong = false
  private let limits: RequestLimits
  private var objectsLeft: Int
  /// Where the answer's memory is reserved, and for whom; nil where it may not be so large that it counts.
  private let account: (ledger: MemoryLedger, client: ClientAddress)?
  private var reservation: MemoryReservation?
  /// The most bytes up to which nothing has to be done.
  private var checkedBytes: Int

  /// All that a request of a client may take; the memory of its answer is reserved in the ledger as it grows.
  package init(
    _ limits: RequestLimits, of client: ClientAddress, in ledger: MemoryLedger, isAbandoned: @escaping () -> Bool
  ) {
    self.limits = limits
    account = (ledger, client)
    work = ReadingWork(steps: limits.steps, isAbandoned: isAbandoned)
    objectsLeft = limits.answerObjects
    byteLimit = limits.answerBytes
    isTrial = false
    checkedBytes = min(byteLimit, Self.reservedAtOnce)
  }

  /// So little that a request may take it at once.
  package init(trialOf limits: RequestLimits) {
    self.limits = limits
    account = nil
    work = ReadingWork(steps: min(limits.steps, Trial.steps))
    objectsLeft = limits.answerObjects
    byteLimit = min(limits.answerBytes, Trial.bytes)
    isTrial = true
    checkedBytes = byteLimit
  }

  /// What an answer to a write may take, which has gone too far to be refused.
  package init(unlimitedBut limits: RequestLimits) {
    self.limits = limits
    account = nil
    work = ReadingWork(steps: .max)
    objectsLeft = limits.answerObjects
    byteLimit = limits.answerBytes
    isTrial = false
    checkedBytes = byteLimit
  }

  /// A state as this request reads it.
  package func metered(_ state: ModelState) -> MeteredState { MeteredState(state, work) }

  /// The answer with its memory.
  package func settled(_ response: consuming Response) -> Response {
    response.memory = reservation
    return response
  }

  // MARK: Steps and bytes

  /// Throws `too-many-steps` where the work has stopped: what was read is then worth nothing.
  package func check() throws(Problem) {
    guard work.stop != nil else { return }
    try Problem.translating { () throws(ModelError) in try work.check() }
  }

  /// The same, and looks how long the answer has become. Throws `too-many-bytes` over `answer.bytes`, and `overloaded`
  /// where its memory would be more than the client's share, or than there is.
  package func check(_ bytes: [UInt8]) throws(Problem) {
    if work.stop != nil || bytes.count > checkedBytes { try checkSlowly(bytes) }
  }

  private func checkSlowly(_ bytes: [UInt8]) throws(Problem) {
    try check()
    guard bytes.count <= byteLimit else {
      isTooLong = true
      throw Problem(
        .tooManyBytes,
        "the answer would have more than \(limits.answerBytes) bytes (answer.bytes): ask for fewer objects (limit, and "
          + "page for the rest), for some of their keys (keys), or expand less")
    }
    try reserve(bytes)
  }

  /// Reserves the memory of an answer that has a limit of its own. Throws `overloaded`.
  package func reserve(_ bytes: [UInt8]) throws(Problem) {
    guard let account, bytes.capacity > reservation?.byteCount ?? 0 else { return }
    do throws(MemoryRefusal) {
      if let reservation {
        try reservation.resize(to: bytes.capacity)
      } else {
        reservation = try account.ledger.reserve(bytes.capacity, for: account.client, .responses)
      }
    } catch {
      throw Problem(error)
    }
    checkedBytes = min(byteLimit, max(bytes.capacity, bytes.count + Self.reservedAtOnce))
  }

  // MARK: Objects

  /// Takes objects from what is left, or throws `too-many-objects`.
  package func spend(objects count: Int) throws(Problem) {
    guard count <= objectsLeft else {
      throw Problem(.tooManyObjects, "the answer would be made of more than \(limits.answerObjects) objects")
    }
    objectsLeft -= count
  }

  /// Takes what a key path reads of its second and each further to-many. No object is looked at twice for that: the
  /// ways that lead to each are counted.
  package func spend(on path: ModelKeyPath, of reference: Reference, in state: MeteredState) throws(Problem) {
    if path.operation == nil, path.keys.count == 1 { return try spendOnMembers(of: reference, path.keys[0], in: state) }
    var ways: [Reference: Int] = [reference: 1]
    var crossed = 0
    for key in path.keys + (path.operation?.memberKeys ?? []) {
      var next: [Reference: Int] = [:]
      var members = 0
      var isCollection = false
      for (object, count) in ways {
        guard let record = state.record(object) else { continue }
        let value = state.value(of: record, object, key: key)
        let elements = value.elements
        isCollection = isCollection || elements != nil
        let (product, isOver) = count.multipliedReportingOverflow(by: elements?.count ?? 1)
        members = isOver ? .max : members.addingReportingOverflow(product).overflow ? .max : members + product
        work.spend(elements?.count ?? 0)
        try check()
        for case .reference(let target) in elements ?? [value] { next[target, default: 0] += count }
      }
      try check()
      if isCollection { crossed += 1 }
      if isCollection, crossed > 1 { try spend(objects: members) }
      ways = next
    }
  }

  /// Takes what one key reads, which crosses one to-many at most: most requests need no more.
  private func spendOnMembers(of reference: Reference, _ key: Int, in state: MeteredState) throws(Problem) {
    guard let record = state.record(reference) else { return try check() }
    work.spend(state.value(of: record, reference, key: key).elements?.count ?? 0)
    try check()
  }
}

/// The limits of one request.
package struct RequestLimits: Sendable {
  /// The most operations of a JSON Patch. `patch.operations`.
  package var patchOperations = 1000
  /// The most operations of one transaction, objects that are made in place included. `transactions.operations`.
  package var transactionOperations = 10_000
  /// The most objects that one response may have in the place of references, or members that it may read of a second
  /// to-many behind the first: the ways that lead to each count, and they multiply. `answer.objects`.
  package var answerObjects = 100_000
  /// The most bytes of one response. `answer.bytes`.
  package var answerBytes = 64 << 20
  /// The most steps that one request may take to read what it asks for: see `ReadingWork`. `request.steps`.
  package var steps = 20_000_000
  /// Threads for requests that take long; 0 means one for each core, and at least two.
  package var threads = 0
  /// The most requests that wait for one of these threads.
  package var waiting = 1024
  /// The same of one client.
  package var waitingPerClient = 256
  /// The most transactions of one response of the journal. `journal.records`.
  package var journalRecords = 10_000
  /// The most bytes of one response of the journal, where that is more than one transaction. `journal.bytes`.
  package var journalBytes = 16 * 1024 * 1024

  /// The defaults.
  package init() {}
}
