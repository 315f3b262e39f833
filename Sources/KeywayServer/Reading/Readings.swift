import HTTPServer
import KeyValueModel
import Synchronization

/// The way of a request that reads: what takes little is answered at once, on the thread of its connection; what takes
/// more is given up after that little, and begun anew in its turn on a thread of the pool.
///
/// Most requests read one object or one key. To hand each of them to another thread would cost more than they do; and
/// which of them take long cannot be told beforehand.
final class Readings: Sendable {
  /// Works out an answer within a budget. It may be called a second time, then with a larger one, and on any thread.
  typealias Reading = @Sendable (_ budget: ReadingBudget) throws(Problem) -> Response

  private let pool: ReadingPool
  private let ledger: MemoryLedger
  private let limits: RequestLimits
  private let abandoned = Atomic<Int>(0)
  private let refused = Atomic<Int>(0)

  /// The way of requests within these limits. What large answers hold is reserved in the ledger.
  init(_ limits: RequestLimits, ledger: MemoryLedger) {
    self.limits = limits
    self.ledger = ledger
    pool = ReadingPool(limits)
  }

  /// Answers a request with what `reading` gives. `isLong` says that it is known to take long.
  func response(
    to request: borrowing Request, isLong: Bool = false, _ reading: @escaping Reading
  ) throws(Problem) -> HandlerResponse {
    if isLong { return deferred(for: request.client, reading) }
    let trial = ReadingBudget(trialOf: limits)
    do throws(Problem) {
      let response = try reading(trial)
      try trial.check()
      return .response(response)
    } catch {
      guard trial.isTrialOver else { throw error.judged(by: trial.cursor) }
      return deferred(for: request.client, reading)
    }
  }

  private func deferred(for client: ClientAddress, _ reading: @escaping Reading) -> HandlerResponse {
    .deferred { [self] completion in
      perform(for: client, completion) { [self] in completion.respond(response(to: client, completion, reading)) }
    }
  }

  /// Does something long for a client, which waits for `completion`, in its turn on a thread of the pool. Where too
  /// much waits already, or the client has left meanwhile, it is not done, and `completion` has an answer.
  func perform(for client: ClientAddress, _ completion: Completion, _ job: @escaping @Sendable () -> Void) {
    let isAccepted = pool.submit(for: client) { [self] in
      // A crowd that came and went must not be worked for.
      guard !completion.isAbandoned else {
        abandoned.add(1, ordering: .relaxed)
        return completion.respond(Problem(.overloaded, "the client has left").response)
      }
      job()
    }
    guard !isAccepted else { return }
    refused.add(1, ordering: .relaxed)
    completion.respond(
      Problem(.overloaded, "as many requests wait as may (requests.waiting, requests.waitingPerClient); try again")
        .response)
  }

  /// The answer to a client that waits for it.
  private func response(to client: ClientAddress, _ completion: Completion, _ reading: Reading) -> Response {
    let budget = ReadingBudget(limits, of: client, in: ledger) { completion.isAbandoned }
    do throws(Problem) {
      defer { if budget.work.stop == .abandoned { abandoned.add(1, ordering: .relaxed) } }
      let response = try reading(budget)
      try budget.check()
      return budget.settled(response)
    } catch {
      return error.judged(by: budget.cursor).response
    }
  }

  /// Ends the work. Those who wait have been answered before.
  func stop() { pool.stop() }

  /// Writes down what there is to count.
  func export(to registry: PrometheusRegistry) {
    registry.set(.readingsRunning, to: Double(pool.runningCount))
    registry.set(.readingsWaiting, to: Double(pool.waitingCount))
    registry.set(.readingsAbandoned, to: Double(abandoned.load(ordering: .relaxed)))
    registry.set(.readingsRefused, to: Double(refused.load(ordering: .relaxed)))
  }
}
