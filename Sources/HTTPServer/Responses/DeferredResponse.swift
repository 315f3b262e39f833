package import HTTPTypes
import Support
import Synchronization

/// The meeting point of a suspended connection and the thread that will have its answer.
///
/// `@unchecked Sendable` for the place, which the lock of `all` guards, and for the connection: libmicrohttpd keeps a
/// suspended connection until it is resumed, only the call that turns the state to `.responded` resumes it, and that is
/// allowed from any thread.
final class DeferredResponse: @unchecked Sendable {
  /// What comes of the request.
  enum Outcome {
    /// This response.
    case response(Response)
    /// A stream, with the fields of its head.
    case stream(EventStream, HTTPFields)
  }

  private enum State {
    case open
    case responded(Outcome)
    case taken
  }

  private let state = Locked(State.open)
  private let connection: DaemonConnection
  private let all: DeferredResponses
  /// The processor time of the client's address; nil while it is alone.
  private let share: TrafficShare?
  /// Where it stands in `all`, whose lock guards it.
  fileprivate var place = 0

  /// Made for a connection that is about to be suspended; leaves `all` when it is resumed.
  init(connection: DaemonConnection, all: DeferredResponses, share: TrafficShare?) {
    self.connection = connection
    self.all = all
    self.share = share
  }

  /// Counts processor time that other threads have spent on the request, in nanoseconds, for its address.
  fileprivate func charge(_ nanoseconds: Int) { share?.count(nanoseconds) }

  /// Stores the first answer and resumes the connection, which then belongs to its own thread again. False where there
  /// was one already.
  @discardableResult
  func respond(_ outcome: Outcome) -> Bool {
    let isFirst = state.withLock { state in
      guard case .open = state else { return false }
      state = .responded(outcome)
      return true
    }
    guard isFirst else { return false }
    connection.resume()
    // Only now: a server that stops waits for this set, and must not find the connection suspended.
    all.remove(self)
    return true
  }

  /// Whether nobody waits for an answer any more: the client has closed its side, or has had its answer, as those have
  /// whose server stops. Any thread.
  var isAbandoned: Bool {
    state.withLock { state in
      // While it is open no thread resumes the connection, so its socket stays open.
      guard case .open = state else { return true }
      return connection.isClosedByPeer
    }
  }

  /// The answer, once, for the thread of the connection.
  func take() -> Outcome? {
    state.withLock { state in
      guard case .responded(let outcome) = state else { return nil }
      state = .taken
      return outcome
    }
  }
}

/// All deferred responses that are still owed, so that a server that stops can wait for them or give them itself.
final class DeferredResponses: Sendable {
  private struct Owed {
    /// In any order; each knows its place.
    var answers: [DeferredResponse] = []
    var isClosed = false
  }

  private let owed = Locked(Owed())

  var isEmpty: Bool { owed.withLock { $0.answers.isEmpty } }

  /// Counts a response whose connection is suspended by now, so that a thread that finds it here may resume it. `false`
  /// once closed: a stop will not wait for this one, and the caller has to respond at once.
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

  /// Takes no further ones, and gives those that are still owed.
  func close() -> [DeferredResponse] {
    owed.withLock { owed in
      owed.isClosed = true
      return owed.answers
    }
  }
}

/// The duty to answer one deferred request. Usable from any thread.
package final class Completion: Sendable {
  private enum Destination {
    case connection(DeferredResponse)
    case carried(CarriedRequest)
    case completion(
      Completion, prepare: @Sendable (Response) -> Response,
      willStream: @Sendable (EventStream, HTTPFields) -> HTTPFields)
  }

  private let destination: Destination
  private let handler: any RequestHandler
  private let isAnswered = Atomic(false)
  /// The processor time of the thread when the part of the work under way began.
  private let workBegan = Atomic<Int64>(0)

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
    // The handler has let go of the last reference without a response, and the client must not wait for ever.
    if !isAnswered.load(ordering: .acquiring) { respond(handler.response(to: .unanswered)) }
  }

  /// Sends the answer. The first call counts; later ones do nothing, as does one after the server has stopped.
  package func respond(_ response: Response) {
    guard !isAnswered.exchange(true, ordering: .acquiringAndReleasing) else { return }
    switch destination {
    case .connection(let pending): pending.respond(.response(response))
    case .carried(let carried): carried.respond(response)
    case .completion(let completion, let prepare, _): completion.respond(prepare(response))
    }
  }

  /// Hands the request to the handler once more, on the thread of its connection; one that was carried in another,
  /// on a thread for those. The handler has had it keep its body (`Request.keepBody`). Counts as an answer: the first
  /// one counts, and where the server has stopped meanwhile, the request has been answered.
  ///
  /// - Parameter outcome: The findings of the handler meanwhile: `Request.outcome` when it has the request again.
  package func handleAgain(with outcome: (any Sendable)? = nil) {
    var response = Response(status: .serviceUnavailable)
    response.retry = Response.Retry(with: outcome)
    respond(response)
  }

  /// Answers with status 200, these fields, and then the events of a stream that the server's hub opened. The first
  /// answer counts: a stream that comes too late is abandoned, as is one for a request that was carried in another,
  /// which is then unanswered.
  package func become(_ stream: EventStream, fields: HTTPFields) {
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

  /// Begins a part of the work for the request on the calling thread, which ends it by `endWork`: its processor time
  /// counts towards `connections.timePercent` of the client's address, as that of the connection threads does. Parts of
  /// one request come one after the other, on any threads.
  package func beginWork() { workBegan.store(SystemClock.threadNanoseconds, ordering: .relaxed) }

  /// Ends the part of the work that `beginWork` has begun on this thread.
  package func endWork() {
    charge(Int(SystemClock.threadNanoseconds - workBegan.load(ordering: .relaxed)))
  }

  private func charge(_ nanoseconds: Int) {
    switch destination {
    case .connection(let pending): pending.charge(nanoseconds)
    case .carried: break
    case .completion(let completion, _, _): completion.charge(nanoseconds)
    }
  }

  /// Whether the client has left while it waited, or has been answered, as all are when the server stops: long work for
  /// it need not begin, or go on.
  package var isAbandoned: Bool {
    switch destination {
    case .connection(let pending): pending.isAbandoned
    case .carried(let carried): isAnswered.load(ordering: .acquiring) || carried.isAbandoned
    case .completion(let completion, _, _): completion.isAbandoned
    }
  }

  /// A completion in front of this one, to be answered in its place: `prepare` gets its answer and gives what is sent.
  /// It is called exactly once, before anything is sent, on the thread that answers: also where the client has left or
  /// the server has stopped, and with the answer to the fault `unanswered` where the handler never responded.
  /// `willStream` is called instead where a stream becomes the answer, and gives the fields that are sent.
  package func preparing(
    _ prepare: @escaping @Sendable (Response) -> Response,
    willStream: @escaping @Sendable (EventStream, HTTPFields) -> HTTPFields = { $1 }
  ) -> Completion {
    Completion(self, .completion(self, prepare: prepare, willStream: willStream))
  }
}
