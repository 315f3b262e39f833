import Dispatch
import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support

/// The write of a request, from the store's queue to the response.
final class PendingWrite: StoreWrite {
  /// The outcome of a write, until it is durable.
  private enum Answer: Sendable {
    case response(Response)
    /// The commit and the state from which the response with a large object is encoded, outside the writer.
    case largeObject(Commit, ModelState)
    /// The response of another node that has executed the same request, regardless of the outcome of the batch.
    case precedent(Response)
  }

  let transaction: Transaction
  let client: Int
  /// The bytes that the client sent, or the larger size in memory of the parsed body.
  let byteCount: Int
  private let write: Write
  private let context: RequestContext
  /// True if the write was prepared before, so that its time on the writer counts for the client.
  private let isLarge: Bool
  private let writer: TransactionWriter
  private let completion: Completion
  private let rendering: TransactionWriter.Rendering
  private let answer = Locked<Answer?>(nil)

  /// The size of an object, in bytes of JSON, above which its response is encoded outside the writer.
  static let largeBytes = 32_768
  /// The queue that encodes responses with large objects, so that the next write need not wait.
  private static let encoding = DispatchQueue(
    label: "keyway.answers", qos: .userInitiated, attributes: .concurrent)

  /// Creates the write of a request as a transaction. `completion` sends its response.
  init(
    _ transaction: Transaction, of client: ClientAddress, bytes: Int, isLarge: Bool, _ write: Write,
    _ context: RequestContext, by writer: TransactionWriter, _ completion: Completion,
    rendering: @escaping TransactionWriter.Rendering
  ) {
    (self.transaction, self.client, byteCount, self.isLarge) = (transaction, client.hashValue, bytes, isLarge)
    (self.write, self.context, self.writer) = (write, context, writer)
    (self.completion, self.rendering) = (completion, rendering)
  }

  func begin() {
    // The client is charged for the writer's time on a large write.
    if isLarge { completion.beginWork() }
  }

  /// Returns the attachment that is stored with the commit. Nil for a write without a name from its client or from the
  /// nodes.
  ///
  /// The response is encoded for it here, and sent afterwards. The response with a large object is not stored if only
  /// nodes name the write: a node that retries the write receives the cursor of its commit.
  func attachment(to commit: Commit, _ state: borrowing ModelState) -> [UInt8]? {
    let (request, name) = (context.idempotency, context.nodes?.name)
    guard request != nil || name != nil else { return nil }
    var response = Response(status: .noContent)
    if isKept(in: state) {
      response = rendered(commit, state)
      answer.withLock { [response] in $0 = .response(response) }
    } else {
      response.fields[.keywayCursor] = writer.store.cursor(commit.revision).description
    }
    guard let name else { return StoredResponse(request: request, response: response).bytes }
    return PassedAttachment(name, request, response).bytes
  }

  /// Returns true if the response is stored with the commit.
  private func isKept(in state: borrowing ModelState) -> Bool {
    context.idempotency != nil || context.nodes?.name != nil && !write.isAbout(moreThan: Self.largeBytes, in: state)
  }

  func conclude(_ outcome: Result<Commit, ModelError>, _ state: borrowing ModelState, _ revision: Revision) {
    if isLarge { completion.endWork() }
    let answer: Answer
    switch outcome {
    case .success(let commit):
      // `attachment(to:_:)` has made the response.
      if isKept(in: state) { return }
      if write.isAbout(moreThan: Self.largeBytes, in: state) {
        answer = .largeObject(commit, copy state)
      } else {
        answer = .response(rendered(commit, state))
      }
    case .failure(let error):
      let problem = writer.refusal(error, of: write, for: context.viewer, state)
      answer = .response(problem.judged(by: writer.store.cursor(revision)).response)
    }
    self.answer.withLock { $0 = answer }
  }

  func finish(_ failure: StoreUnavailable?) {
    guard let answer = answer.withLock({ $0.take() }) else { return assertionFailure("the write was not concluded") }
    switch (answer, failure) {
    case (.precedent(let response), _), (.response(let response), nil): completion.respond(response)
    case (.largeObject(let commit, let state), nil): Self.encoding.async { self.encode(commit, state) }
    case (_, let failure?): completion.respond(Problem(.storeUnavailable, failure.reason).response)
    }
  }

  private func encode(_ commit: Commit, _ state: ModelState) {
    completion.beginWork()
    let response = rendered(commit, state)
    completion.endWork()
    completion.respond(response)
  }

  private func rendered(_ commit: Commit, _ state: borrowing ModelState) -> Response {
    var response = rendering(commit, state)
    response.fields.append(.keywayCursor, writer.store.cursor(commit.revision))
    return response
  }
}

// MARK: - Other nodes

extension PendingWrite {
  func takePrecedent() -> Bool {
    guard let response = context.nodes?.precedent() ?? writer.idempotency.precedent(in: context) else { return false }
    answer.withLock { $0 = .precedent(response) }
    return true
  }

  func handBack() -> Bool {
    guard let response = context.nodes?.handedBack() else { return false }
    completion.respond(response)
    return true
  }
}
