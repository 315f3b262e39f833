import Dispatch
import HTTPServer
import Support

/// A queue of streams whose beginning takes work: those of many clients that come back at once, or many different live
/// queries.
///
/// On the threads of requests they would hold up every other request, and all at once they would take every core from
/// the writer. Here a few threads open one stream after the other, each client in its turn. Requests of one client
/// delay no other: one thread is always free of that client.
final class OpeningQueue: Sendable {
  /// Opens a stream. Its parameter returns true once the client has left, so that the work can stop.
  typealias Opening = @Sendable (_ isAbandoned: @escaping @Sendable () -> Bool) throws(Problem) -> EventStream

  private struct Waiting: Sendable {
    let completion: Completion
    let open: Opening
  }

  private struct State {
    var line: FairQueue<ClientAddress, Waiting>
    /// The number of running threads.
    var threads = 0
  }

  /// The number of threads that open streams. One client uses at most one of them.
  private static let threadCount = 2

  /// The number of waiting streams that are checked for clients that have left, when there is no room for another.
  private static let sweepCount = 16

  /// The maximum pause of a thread between two openings.
  private static let longestRest = Duration.milliseconds(250)

  private let queue: DispatchQueue
  private let readiness: Readiness
  private let state: Locked<State>

  /// Creates a queue within `streams.opening` and `streams.openingPerAddress`.
  init(label: String, limits: StreamLimits, readiness: Readiness) {
    queue = DispatchQueue(label: label, qos: .utility, attributes: .concurrent)
    self.readiness = readiness
    state = Locked(
      State(
        line: FairQueue(
          threads: Self.threadCount, limit: limits.opening, limitPerClient: limits.openingPerAddress)))
  }

  /// The number of streams that wait or are being opened.
  var count: Int { state.withLock { $0.line.waitingCount + $0.line.runningCount } }

  /// Returns a response that opens a stream in its turn, or `overloaded` if too many streams wait already, of all
  /// clients or of this one.
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

  /// Starts one more thread if there is work for it.
  private func startThread() {
    let isNeeded = state.withLock { state in
      guard state.threads < Self.threadCount, state.line.hasNext else { return false }
      state.threads += 1
      return true
    }
    guard isNeeded else { return }
    let thread = SystemThread("keyway-open") {
      // Openings yield to short work: to connections, to the writer and to streams.
      SystemThread.yieldToOthers()
      self.work()
    }
    // If the system has no thread left, a shared one is used.
    if let thread { thread.detach() } else { queue.async { self.work() } }
  }

  /// If there is no room, removes streams of this client whose connections have ended.
  private func sweep(_ client: ClientAddress) {
    let left = state.withLock { state in
      state.line.hasRoom(for: client)
        ? []
        : state.line.removeUnwanted(of: client, most: Self.sweepCount, isUnwanted: { $0.completion.isAbandoned })
    }
    for waiting in left { waiting.completion.respond(.clientClosedRequest) }
  }

  /// Opens one stream after the other until none waits.
  private func work() {
    while let (waiting, client) = take() {
      // The end of one opening may leave a single client waiting, which may then use more threads.
      startThread()
      let start = ContinuousClock.now
      complete(waiting)
      state.withLock { $0.line.finish(client) }
      rest(after: .now - start)
    }
  }

  /// Pauses for as long as a costly opening took. A stream begins under a lock that keeps writers from publishing, and
  /// openings without a pause would keep them out.
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
    // Clients that have left must not cost work.
    guard !completion.isAbandoned else { return completion.respond(.clientClosedRequest) }
    do throws(Problem) {
      try readiness.check()
      completion.become(try waiting.open { completion.isAbandoned }, fields: .eventStream)
    } catch {
      completion.respond(completion.isAbandoned ? .clientClosedRequest : error.response)
    }
  }
}
