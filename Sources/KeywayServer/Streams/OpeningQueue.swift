import Dispatch
import HTTPServer
import Support

/// Where streams wait to be opened whose beginning takes work: a crowd that comes back, or many different live queries.
///
/// On the threads of requests they would hold up every other request, and all at once they would take every core from
/// the writer. Here a few threads open one after the other, for each client in its turn, so that what one client asks
/// for delays no other: there is always a thread that is not that client's.
final class OpeningQueue: Sendable {
  /// Opens a stream. What it is given says whether the client has left meanwhile, so that the work need not go on.
  typealias Opening = @Sendable (_ isAbandoned: @escaping @Sendable () -> Bool) throws(Problem) -> EventStream

  private struct Waiting: Sendable {
    let completion: Completion
    let open: Opening
  }

  private struct State {
    var line: FairQueue<ClientAddress, Waiting>
    /// How many threads are at work.
    var threads = 0
  }

  /// The number of threads that open streams; one client has one of them at most.
  private static let threadCount = 2

  /// How many that wait are looked at for clients that have left, when there is no room for another.
  private static let sweepCount = 16

  /// The longest rest of a thread between two openings.
  private static let longestRest = Duration.milliseconds(250)

  private let queue: DispatchQueue
  private let readiness: Readiness
  private let state: Locked<State>

  /// A queue within `streams.opening` and the limits beside it.
  init(label: String, limits: StreamLimits, readiness: Readiness) {
    queue = DispatchQueue(label: label, qos: .utility, attributes: .concurrent)
    self.readiness = readiness
    state = Locked(
      State(
        line: FairQueue(
          threads: Self.threadCount, limit: limits.opening, limitPerClient: limits.openingPerAddress)))
  }

  /// How many streams wait or are being opened.
  var count: Int { state.withLock { $0.line.waitingCount + $0.line.runningCount } }

  /// Answers a client with a stream that waits for its turn to be opened; with `overloaded` where too many wait
  /// already, of all clients or of this one.
  func response(to client: ClientAddress, _ open: @escaping Opening) -> HandlerResponse {
    .deferred { completion in
      guard self.enter(Waiting(completion: completion, open: open), client) else {
        return completion.respond(Problem(.overloaded, "too many streams wait to be opened; try again").response)
      }
    }
  }

  private func enter(_ waiting: Waiting, _ client: ClientAddress) -> Bool {
    sweep(client)
    let isEntered = state.withLock { $0.line.enqueue(waiting, of: client) }
    startThread()
    return isEntered
  }

  /// Has one more thread at work where there is something for it to do.
  private func startThread() {
    let isNeeded = state.withLock { state in
      guard state.threads < Self.threadCount, state.line.hasNext else { return false }
      state.threads += 1
      return true
    }
    guard isNeeded else { return }
    let thread = SystemThread("keyway-open") {
      // A crowd can wait for what is short: for connections, for the writer and for streams.
      SystemThread.yieldToOthers()
      self.work()
    }
    // Where the system has no thread left, one that others share.
    if let thread { thread.detach() } else { queue.async { self.work() } }
  }

  /// Where there is no room, lets go of streams that this client does not wait for any more.
  private func sweep(_ client: ClientAddress) {
    let left = state.withLock { state in
      state.line.hasRoom(for: client)
        ? []
        : state.line.removeUnwanted(of: client, most: Self.sweepCount, isUnwanted: { $0.completion.isAbandoned })
    }
    for waiting in left { waiting.completion.respond(Self.clientHasLeft.response) }
  }

  /// Opens what is next until nothing is.
  private func work() {
    while let (waiting, client) = take() {
      // The end of one stream may leave a single client waiting, which may have more threads then.
      startThread()
      let start = ContinuousClock.now
      complete(waiting)
      state.withLock { $0.line.finish(client) }
      rest(after: .now - start)
    }
  }

  /// Rests as long as a costly opening took: a stream begins where writers cannot publish, and one opening behind the
  /// other would keep them out.
  private func rest(after effort: Duration) {
    guard effort >= .milliseconds(1) else { return }
    SystemThread.pause(milliseconds: Int(min(effort, Self.longestRest) / .milliseconds(1)))
  }

  private func take() -> (job: Waiting, client: ClientAddress)? {
    state.withLock { state in
      let next = state.line.next()
      if next == nil { state.threads -= 1 }
      return next
    }
  }

  private func complete(_ waiting: Waiting) {
    let completion = waiting.completion
    // A crowd that came and went must not be worked for.
    guard !completion.isAbandoned else { return completion.respond(Self.clientHasLeft.response) }
    do throws(Problem) {
      try readiness.check()
      completion.become(try waiting.open { completion.isAbandoned }, fields: .eventStream)
    } catch {
      completion.respond((completion.isAbandoned ? Self.clientHasLeft : error).response)
    }
  }

  /// What is counted of it; there is no client to hear it.
  private static var clientHasLeft: Problem { Problem(.overloaded, "the client has left") }
}
