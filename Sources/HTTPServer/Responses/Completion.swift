package import HTTPTypes
import Synchronization

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
  package func beginWork() { workBegan.store(MonotonicClock.threadNanoseconds, ordering: .relaxed) }

  /// Ends the part of the work that `beginWork` has begun on this thread.
  package func endWork() {
    charge(Int(MonotonicClock.threadNanoseconds - workBegan.load(ordering: .relaxed)))
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
