import HTTPServer
import HTTPTypes
import Store
import Support

/// The answers to the requests of a batch, as they come in any order: the batch is answered with the last of them.
///
/// The body of each is counted in the share of its own client until all are there, and together they are bounded: where
/// that of a write that was done would be too much, the write is answered without it, as it is where its client may
/// hold no more memory, or asks again what became of it. So nobody hears that nothing happened, and nothing is asked
/// for again.
final class BatchAnswers: Sendable {
  private struct State {
    var answers: [NodeAnswer?]
    var missing: Int
    var bodyBytes = 0
    /// What clients hold for the bodies.
    var memory: [MemoryReservation] = []
  }

  private let state: Locked<State>
  private let limit: Int
  private let handed: @Sendable () -> HandedRecords?
  private let respond: @Sendable (Response) -> Void

  /// For so many requests, with at most `limit` bytes of bodies; `respond` gets the answer to the batch. `handed` gives
  /// the records that go with it, once all of it is done.
  init(
    of count: Int, limit: Int = WriteBatch.mostAnswerBytes, handed: @escaping @Sendable () -> HandedRecords? = { nil },
    _ respond: @escaping @Sendable (Response) -> Void
  ) {
    state = Locked(State(answers: Array(repeating: nil, count: count), missing: count))
    self.limit = limit
    self.handed = handed
    self.respond = respond
  }

  /// The answer to one of them, by its place in the batch.
  func add(_ response: Response, at index: Int) {
    let all = state.withLock { state -> [NodeAnswer]? in
      var response = response
      if response.body.count > limit - state.bodyBytes, response.status.kind == .successful { response.dropBody() }
      state.bodyBytes += response.body.count
      if let memory = response.memory { state.memory.append(memory) }
      state.answers[index] = NodeAnswer(
        status: response.status.code, fields: response.fields.map { ($0.name.rawName, $0.value) }, body: response.body)
      state.missing -= 1
      return state.missing == 0 ? state.answers.compactMap { $0 } : nil
    }
    guard let all else { return }
    respond(
      Response(status: .ok, fields: [.contentType: WriteBatch.mediaType], body: WriteBatch.encoded(all, handed())))
    state.withLock { $0.memory = [] }
  }
}
