import HTTPTypes
import Support
import Synchronization

/// Connects a suspended connection and the thread that will provide its response.
///
/// `@unchecked Sendable` for `place`, which the lock of `all` guards, and for the connection: libmicrohttpd keeps a
/// suspended connection until it is resumed, only the call that changes the state to `.responded` resumes it, and that
/// is allowed from any thread.
final class DeferredResponse: @unchecked Sendable {
  /// The answer to the request.
  enum Outcome {
    /// A response.
    case response(Response)
    /// A stream, with the fields of its head.
    case stream(EventStream, FieldSection)
  }

  private enum State {
    case open
    case responded(Outcome)
    case taken
  }

  private let state = Locked(State.open)
  private let connection: DaemonConnection
  private let all: DeferredResponses
  /// The processor time share of the client's address; nil if only one address is active.
  private let share: TrafficShare?
  /// The index in `all`, whose lock guards it.
  fileprivate var place = 0

  /// Creates a deferred response for a connection that is about to be suspended; it leaves `all` when the connection is
  /// resumed.
  init(connection: DaemonConnection, all: DeferredResponses, share: TrafficShare?) {
    self.connection = connection
    self.all = all
    self.share = share
  }

  /// Charges processor time that other threads have spent on the request, in nanoseconds, to its address.
  fileprivate func charge(_ nanoseconds: Int) { share?.count(nanoseconds) }

  /// Stores the first answer and resumes the connection, which then belongs to its own thread again. Returns false if
  /// there already was an answer.
  @discardableResult
  func respond(_ outcome: Outcome) -> Bool {
    let isFirst = state.withLock { state in
      guard case .open = state else { return false }
      state = .responded(outcome)
      return true
    }
    guard isFirst else { return false }
    connection.resume()
    // Only now: a stopping server waits for this set, and must not find the connection suspended.
    all.remove(self)
    return true
  }

  /// True if no one waits for an answer any more: the client has closed its side, or has already been answered, as all
  /// clients are when the server stops. Any thread.
  var isAbandoned: Bool {
    state.withLock { state in
      // While the state is open, no thread resumes the connection, so its socket stays open.
      guard case .open = state else { return true }
      return connection.isClosedByPeer
    }
  }

  /// Returns the answer, once, for the thread of the connection.
  func take() -> Outcome? {
    let state = state.withLock { state in
      if case .open = state { State.open } else { exchange(&state, with: .taken) }
    }
    guard case .responded(let outcome) = consume state else { return nil }
    return outcome
  }
}

/// All deferred responses that are still pending, so that a stopping server can wait for them or provide them itself.
final class DeferredResponses: Sendable {
  private struct Owed {
    /// The pending responses in any order; each one stores its index.
    var answers: [DeferredResponse] = []
    var isClosed = false
  }

  private let owed = Locked(Owed())

  var isEmpty: Bool { owed.withLock { $0.answers.isEmpty } }

  /// Adds a response whose connection is already suspended, so that a thread that finds it here may resume it. Returns
  /// false once closed: a stop will not wait for this one, and the caller has to respond immediately.
  func insert(_ answer: DeferredResponse) -> Bool {
    owed.withLock { owed in
      guard !owed.isClosed else { return false }
      answer.place = owed.answers.count
      owed.answers.append(answer)
      return true
    }
  }

  func remove(_ answer: DeferredResponse) {
    owed.withLock { owed in
      let place = answer.place
      guard owed.answers.indices.contains(place), owed.answers[place] === answer else { return }
      owed.answers.swapAt(place, owed.answers.count - 1)
      owed.answers.removeLast()
      if place < owed.answers.count { owed.answers[place].place = place }
      if owed.answers.capacity > 4 * owed.answers.count + 64 { owed.answers = Array(owed.answers[...]) }
    }
  }

  /// Accepts no further responses, and returns those that are still pending.
  func close() -> [DeferredResponse] {
    owed.withLock { owed in
      owed.isClosed = true
      return owed.answers
    }
  }
}

/// The obligation to answer one deferred request. Usable from any thread.
package final class Completion: Sendable {
  private enum Destination {
    case connection(DeferredResponse)
    case carried(CarriedRequest)
    case completion(
      Completion, prepare: @Sendable (Response) -> Response,
      willStream: @Sendable (EventStream, FieldSection) -> FieldSection)
  }

  private let destination: Destination
  private let handler: any RequestHandler
  private let isAnswered = Atomic(false)
  private static let noWork = Int64.min
  /// The processor time of the thread when the current part of the work began, or `noWork`.
  private let workBegan = Atomic(Completion.noWork)

  init(_ pending: DeferredResponse, handler: any RequestHandler) {
    destination = .connection(pending)
    self.handler = handler
  }

  init(_ carried: CarriedRequest, handler: any RequestHandler) {
    destination = .carried(carried)
    self.handler = handler
  }

  private init(_ completion: Completion, _ destination: Destination) {
    self.destination = destination
    handler = completion.handler
  }

  deinit {
    // The handler has released the last reference without a response, and the client must not wait forever.
    if !isAnswered.load(ordering: .acquiring) { respond(handler.response(to: .unanswered)) }
  }

  /// Sends the response. Only the first call has an effect, and none after the server has stopped.
  package func respond(_ response: Response) {
    guard !isAnswered.exchange(true, ordering: .acquiringAndReleasing) else { return }
    switch destination {
    case .connection(let pending): pending.respond(.response(response))
    case .carried(let carried): carried.respond(response)
    case .completion(let completion, let prepare, _): completion.respond(prepare(response))
    }
  }

  /// Hands the request to the handler again, on the thread of its connection, or on a separate queue for a carried
  /// request. The handler must have kept the body (`Request.keepBody`). Counts as an answer: only the first one has an
  /// effect, and if the server has stopped in the meantime, the request has been answered.
  ///
  /// - Parameter outcome: The results of the handler in the meantime: `Request.outcome` when it has the request again.
  package func handleAgain(with outcome: (any Sendable)? = nil) {
    var response = Response(status: .serviceUnavailable)
    response.retry = Response.Retry(with: outcome)
    respond(response)
  }

  /// Answers with status 200, these fields, and then the events of a stream that the server's hub opened. Only the
  /// first answer has an effect: a stream that comes too late is abandoned, as is one for a carried request, which then
  /// gets the response to the fault `unanswered`.
  package func become(_ stream: EventStream, fields: FieldSection) {
    let isFirst = !isAnswered.exchange(true, ordering: .acquiringAndReleasing)
    switch destination {
    case .connection(let pending):
      if !isFirst || !pending.respond(.stream(stream, fields)) { stream.worker.send(.abandon(stream.id)) }
    case .carried(let carried):
      stream.worker.send(.abandon(stream.id))
      if isFirst { carried.respond(handler.response(to: .unanswered)) }
    case .completion(let completion, _, let willStream):
      if isFirst {
        completion.become(stream, fields: willStream(stream, fields))
      } else {
        stream.worker.send(.abandon(stream.id))
      }
    }
  }

  /// Begins a part of the work for the request on the calling thread, which ends it by calling `endWork`: its processor
  /// time counts towards `connections.timePercent` of the client's address, as that of the connection threads does. The
  /// parts of one request run one after another, on any threads.
  package func beginWork() { workBegan.store(SystemClock.threadNanoseconds, ordering: .relaxed) }

  /// Ends the part of the work that `beginWork` began on this thread. Does nothing if none was begun.
  package func endWork() {
    let began = workBegan.exchange(Self.noWork, ordering: .relaxed)
    if began != Self.noWork { charge(Int(SystemClock.threadNanoseconds - began)) }
  }

  private func charge(_ nanoseconds: Int) {
    switch destination {
    case .connection(let pending): pending.charge(nanoseconds)
    case .carried: break
    case .completion(let completion, _, _): completion.charge(nanoseconds)
    }
  }

  /// True if the client has left while it waited, or has been answered, as all clients are when the server stops: long
  /// work for it need not begin or continue.
  package var isAbandoned: Bool {
    switch destination {
    case .connection(let pending): pending.isAbandoned
    case .carried(let carried): isAnswered.load(ordering: .acquiring) || carried.isAbandoned
    case .completion(let completion, _, _): completion.isAbandoned
    }
  }

  /// Returns a completion to be answered in place of this one: `prepare` receives its response and returns the one to
  /// send. It is called exactly once, before anything is sent, on the thread that answers: even if the client has left
  /// or the server has stopped, and with the response to the fault `unanswered` if the handler never responded. If a
  /// stream is the answer, `willStream` is called instead, and returns the fields to send.
  package func preparing(
    _ prepare: @escaping @Sendable (Response) -> Response,
    willStream: @escaping @Sendable (EventStream, FieldSection) -> FieldSection = { $1 }
  ) -> Completion {
    Completion(self, .completion(self, prepare: prepare, willStream: willStream))
  }
}
