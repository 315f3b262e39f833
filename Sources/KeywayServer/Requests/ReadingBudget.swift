package import HTTPServer
package import KeyValueModel

/// The remaining budget of a request that reads: steps, bytes of its response, and objects in place of references. Used
/// by one thread at a time.
package final class ReadingBudget {
  /// The budget of a request on the thread of its connection, while others of that thread wait: a few milliseconds.
  private enum Trial {
    static let steps = 20_000
    static let bytes = 64 << 10
  }

  /// The cursor of the state that is read, once that is known. A refusal of the request names it as the state that the
  /// request was evaluated in.
  package var cursor: Cursor?

  /// The number of bytes that a response may grow by before its memory is reserved again.
  private static let reservedAtOnce = 64 << 10

  /// The remaining steps, and intermediate results.
  package let work: ReadingWork
  /// The maximum number of bytes of the response.
  package let byteLimit: Int
  /// True if this was a trial budget and did not suffice. The request is then repeated with its full budget.
  package var isTrialOver: Bool { isTrial && (isTooLong || work.stop != nil) }
  private let isTrial: Bool
  private var isTooLong = false
  private let limits: RequestLimits
  private var objectsLeft: Int
  /// The ledger and the client for which the memory of the response is reserved. Nil if the response cannot become
  /// large enough to count.
  private let account: (ledger: MemoryLedger, client: ClientAddress)?
  private var reservation: MemoryReservation?
  /// The number of bytes up to which `check` has nothing to do.
  private var checkedBytes: Int

  /// Creates the full budget of a client's request. The memory of its response is reserved in the ledger as it grows.
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

  /// Creates a trial budget, small enough to run the request at once.
  package init(trialOf limits: RequestLimits) {
    self.limits = limits
    account = nil
    work = ReadingWork(steps: min(limits.steps, Trial.steps))
    objectsLeft = limits.answerObjects
    byteLimit = min(limits.answerBytes, Trial.bytes)
    isTrial = true
    checkedBytes = byteLimit
  }

  /// Creates the budget of the response to a write, which can no longer be refused.
  package init(unlimitedBut limits: RequestLimits) {
    self.limits = limits
    account = nil
    work = ReadingWork(steps: .max)
    objectsLeft = limits.answerObjects
    byteLimit = limits.answerBytes
    isTrial = false
    checkedBytes = byteLimit
  }

  /// Returns a state that counts the steps of this request.
  package func metered(_ state: ModelState) -> MeteredState { MeteredState(state, work) }

  /// Returns the response with its reserved memory.
  package func settled(_ response: consuming Response) -> Response {
    response.memory = reservation
    return response
  }

  // MARK: Steps and bytes

  /// Throws `too-many-steps` if the work has stopped. The values read until then are invalid.
  package func check() throws(Problem) {
    guard work.stop != nil else { return }
    try Problem.translating { () throws(ModelError) in try work.check() }
  }

  /// Checks the steps and the length of the response so far. Throws `too-many-bytes` above `answer.bytes`, and
  /// `overloaded` if its memory would exceed the client's share or the total.
  package func check(_ bytes: [UInt8]) throws(Problem) {
    if work.stop != nil || bytes.count > checkedBytes { try checkSlowly(bytes) }
  }

  private func checkSlowly(_ bytes: [UInt8]) throws(Problem) {
    try check()
    guard bytes.count <= byteLimit else {
      isTooLong = true
      throw Problem(
        .tooManyBytes,
        "the response would have more than \(limits.answerBytes) bytes (answer.bytes): request fewer objects (limit, "
          + "and page for the rest) or fewer of their keys (keys), or expand less")
    }
    try reserve(bytes)
  }

  /// Reserves the memory of a response with a limit of its own. Throws `overloaded`.
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

  /// Spends objects. Throws `too-many-objects` if too few are left.
  package func spend(objects count: Int) throws(Problem) {
    guard count <= objectsLeft else {
      throw Problem(.tooManyObjects, "the response would have more than \(limits.answerObjects) objects")
    }
    objectsLeft -= count
  }

  /// Spends the objects that a key path reads through its second and each further to-many. No object is read twice for
  /// that: the number of ways that lead to it is counted.
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
        let (product, overflows) = count.multipliedReportingOverflow(by: elements?.count ?? 1)
        members = overflows ? .max : members.addingReportingOverflow(product).overflow ? .max : members + product
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

  /// Spends the steps to read one key, which crosses one to-many at most. Most requests need no more.
  private func spendOnMembers(of reference: Reference, _ key: Int, in state: MeteredState) throws(Problem) {
    guard let record = state.record(reference) else { return try check() }
    work.spend(state.value(of: record, reference, key: key).elements?.count ?? 0)
    try check()
  }
}

/// Limits of one request.
package struct RequestLimits: Sendable {
  /// The maximum number of operations of a JSON Patch. `patch.operations`.
  package var patchOperations = 1000
  /// The maximum number of operations of one transaction, including objects created in place.
  /// `transactions.operations`.
  package var transactionOperations = 10_000
  /// The maximum number of objects in place of references in one response, and of members read through a second
  /// to-many. Each way that leads to a member counts, and the ways multiply. `answer.objects`.
  package var answerObjects = 100_000
  /// The maximum number of bytes of one response. `answer.bytes`.
  package var answerBytes = 64 << 20
  /// The maximum number of steps of one request that reads: see `ReadingWork`. `request.steps`.
  package var steps = 20_000_000
  /// The number of threads for requests that take long. 0 means one for each core, and at least two.
  package var threads = 0
  /// The maximum number of requests that wait for one of these threads.
  package var waiting = 1024
  /// The maximum number of waiting requests of one client.
  package var waitingPerClient = 256
  /// The maximum number of transactions in one response of the journal. `journal.records`.
  package var journalRecords = 10_000
  /// The maximum number of bytes of one response of the journal, which may exceed it only with a single transaction.
  /// `journal.bytes`.
  package var journalBytes = 16 * 1024 * 1024

  /// Creates the default limits.
  package init() {}
}
