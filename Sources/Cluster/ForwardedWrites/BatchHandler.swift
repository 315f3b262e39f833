import HTTPServer
import HTTPTypes
import KeywayServer
import Store
import Support

/// `POST /v1/nodes/writes`: writes that another node forwards, several at once.
///
/// Each is handled like any other request, by the router, with its own token, limits and counts. That a node sends it
/// means only that its name, `Keyway-Request`, is trusted.
struct BatchHandler: Sendable {
  /// The journal that this node shares with the sender of the batch; nil if it shares none.
  let journal: (any SharedJournal)?

  /// Answers a batch. Throws `malformed-request` if the body is not a batch.
  func writes(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    _ = try Body.mediaType(of: request, among: [WriteBatch.mediaType])
    let messages: [CarriedMessage]
    do throws(WriteBatch.Defect) {
      messages = try WriteBatch.requests(in: request.body())
    } catch {
      throw Problem(.malformedRequest, error.description)
    }
    guard let carrier = request.carrier, !messages.isEmpty else {
      throw Problem(.malformedRequest, "a batch must have at least one write, and cannot be in another batch")
    }
    let place = place(named: request)
    return .deferred { [journal] completion in
      let answers = BatchAnswers(of: messages.count) {
        place.flatMap { journal?.handed(after: $0.cursor.revision, $0.digest, bytes: WriteBatch.mostRecordBytes) }
      } _: {
        completion.respond($0)
      }
      for (index, message) in messages.enumerated() {
        carrier.handle(message, number: index, isAbandoned: { completion.isAbandoned }) {
          answers.add($0, at: index)
        }
      }
    }
  }

  /// Returns the position that the sender of a batch has reached, if the request states it and has the same epoch. The
  /// sender then gets the records after it.
  private func place(named request: borrowing Request) -> HandedPlace? {
    guard let field = request.header(.keywayRecords), let place = HandedPlace(field),
      place.cursor.epoch == journal?.identity.epoch
    else { return nil }
    return place
  }

  /// Throws if a request is in a batch and is not what nodes forward: a write with a name.
  static func check(_ request: borrowing Request, _ route: Route) throws(Problem) {
    guard request.isCarried else { return }
    guard route.isForwarded, request.method != .get, request.method != .head, request.method != .options else {
      throw Problem(.invalidValue, "a batch can have only writes, and \(request.method.rawValue) here is not a write")
    }
    guard request.header(.keywayRequest) != nil else {
      throw Problem(.invalidValue, "a write in a batch must have the field Keyway-Request, which identifies it")
    }
  }
}

/// The answers to the requests of a batch, which arrive in any order. The batch is answered when the last one is there.
///
/// Each body counts in the share of its own client until all are there, and together they are bounded. If the body of a
/// successful write would exceed the limit, the write is answered without it, as it also is if its client may not hold
/// more memory or asks again for the outcome of the write. So no client is told that nothing happened, and no write is
/// sent again.
final class BatchAnswers: Sendable {
  private struct State {
    var answers: [NodeAnswer?]
    var missing: Int
    var bodyBytes = 0
    /// The memory that is reserved for the bodies, for each client.
    var memory: [MemoryReservation] = []
  }

  private let state: Locked<State>
  private let limit: Int
  private let handed: @Sendable () -> HandedRecords?
  private let respond: @Sendable (Response) -> Void

  /// Creates the answers to `count` requests, with at most `limit` bytes of bodies; `respond` receives the answer to
  /// the batch. `handed` returns the records to send with it, once all requests are done.
  init(
    of count: Int, limit: Int = WriteBatch.mostAnswerBytes, handed: @escaping @Sendable () -> HandedRecords? = { nil },
    _ respond: @escaping @Sendable (Response) -> Void
  ) {
    state = Locked(State(answers: Array(repeating: nil, count: count), missing: count))
    self.limit = limit
    self.handed = handed
    self.respond = respond
  }

  /// Adds the answer to the request at an index in the batch.
  func add(_ response: Response, at index: Int) {
    let all = state.withLock { state -> [NodeAnswer]? in
      var response = response
      if response.body.count > limit - state.bodyBytes, response.status.kind == .successful { response.dropBody() }
      state.bodyBytes += response.body.count
      if let memory = response.memory { state.memory.append(memory) }
      state.answers[index] = NodeAnswer(
        status: response.status.code, fields: response.fields.lines, body: response.body)
      state.missing -= 1
      return state.missing == 0 ? state.answers.compactMap { $0 } : nil
    }
    guard let all else { return }
    respond(
      Response(status: .ok, fields: [.contentType: WriteBatch.mediaType], body: WriteBatch.encoded(all, handed())))
    state.withLock { $0.memory = [] }
  }
}
