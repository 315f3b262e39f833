import Dispatch
import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support

/// A write that was handed to the store and is still to be answered.
///
/// Its methods are called by the writer, one after the other and not at the same time. Where another node appended
/// first, the write is judged anew, and `attachment` and `conclude` are called again.
final class PendingWrite: Sendable {
  private let writer: TransactionWriter
  private let write: Write
  private let context: RequestContext
  private let client: ClientAddress
  /// The bytes that the client sent, or those of memory that they were made into.
  private let bytes: Int
  /// True if it was prepared before, and its time on the writer counts for the client.
  private let isLarge: Bool
  private let rendering: TransactionWriter.Rendering
  private let completion: Completion
  /// The response that is kept with the commit, where one is.
  private let kept = Locked<Response?>(nil)

  /// From how many bytes on an object's answers are encoded apart from the writer.
  static let largeBytes = 32_768
  /// Where the answers about large objects are encoded: the next write need not wait for that.
  private static let encoding = DispatchQueue(
    label: "keyway.answers", qos: .userInitiated, attributes: .concurrent)

  /// Creates the pending write of a request that `completion` answers.
  init(
    _ write: Write, _ context: RequestContext, of client: ClientAddress, bytes: Int, isLarge: Bool,
    by writer: TransactionWriter, _ completion: Completion, rendering: @escaping TransactionWriter.Rendering
  ) {
    (self.write, self.context, self.client, self.bytes, self.isLarge) = (write, context, client, bytes, isLarge)
    (self.writer, self.completion, self.rendering) = (writer, completion, rendering)
  }

  /// Hands it to the store, which may have too much to do.
  func submit(_ transaction: Transaction) {
    var attachment: Store.Attachment?
    if context.idempotency != nil || context.nodes.passed != nil {
      attachment = { commit, state in self.attachment(commit, state) }
    }
    let isAccepted = writer.store.submit(
      transaction, of: client.hashValue, bytes: bytes, attachment: attachment, precedent: precedent(),
      giveBack: handingBack(), willBegin: meter()
    ) { outcome, state, revision in
      self.conclude(outcome, state, revision)
    }
    if !isAccepted { completion.respond(Problem(.overloaded, "too many writes wait; try again").response) }
  }

  /// Prepares a large write on the thread of the caller, and hands it to the store.
  func prepareAndSubmit(_ transaction: Transaction) {
    var transaction = transaction
    completion.beginWork()
    transaction.prepare(in: writer.store.snapshot.state, limits: writer.store.limits.transaction)
    completion.endWork()
    submit(transaction)
  }

  /// Returns what is kept with the commit of a write that has a name, its client's or the nodes'.
  ///
  /// The response is made for that, and sent afterwards. The one about a large object that nodes alone name is not
  /// kept: a node that asks for the write again hears that it was done, and by which commit.
  private func attachment(_ commit: Commit, _ state: borrowing ModelState) -> [UInt8] {
    let (request, passed) = (context.idempotency, context.nodes.passed)
    var response = Response(status: .noContent)
    if request == nil, write.isAbout(moreThan: Self.largeBytes, in: state) {
      response.fields[.keywayCursor] = writer.store.cursor(commit.revision).description
      kept.withLock { $0 = nil }
    } else {
      response = rendered(commit, state)
      kept.withLock { [response] in $0 = response }
    }
    guard let passed else { return StoredResponse(request: request, response: response).bytes }
    return PassedAttachment(passed, request, response).bytes
  }

  /// Returns what begins to count the writer's time on a large write for its client.
  private func meter() -> (@Sendable () -> Void)? {
    guard isLarge else { return nil }
    return { [completion] in completion.beginWork() }
  }

  /// Returns what looks for the answer of another node that has carried out the same request.
  private func precedent() -> Store.Precedent? {
    guard let find = context.nodes.precedent else { return nil }
    return { [completion] () -> (@Sendable (StoreUnavailable?) -> Void)? in
      guard let response = find() else { return nil }
      return { _ in completion.respond(response) }
    }
  }

  /// Returns what answers the write when other nodes append first each time.
  private func handingBack() -> Store.GivingBack? {
    guard let response = context.nodes.givenBack else { return nil }
    return { [completion] in completion.respond(response()) }
  }

  /// Returns what answers the write once its commit is durable and published, or has come to nothing.
  private func conclude(
    _ outcome: Result<Commit, ModelError>, _ state: borrowing ModelState, _ revision: Revision
  ) -> @Sendable (StoreUnavailable?) -> Void {
    if isLarge { completion.endWork() }
    let response: Response
    switch outcome {
    case .success(let commit):
      if let kept = kept.withLock({ $0 }) {
        response = kept
      } else if write.isAbout(moreThan: Self.largeBytes, in: state) {
        let state = copy state
        return { failure in
          if let failure { return self.refuse(failure) }
          Self.encoding.async { self.encode(commit, state) }
        }
      } else {
        response = rendered(commit, state)
      }
    case .failure(let error):
      response =
        writer.refusal(error, of: write, for: context.viewer, state).judged(by: writer.store.cursor(revision)).response
    }
    return { failure in
      if let failure { self.refuse(failure) } else { self.completion.respond(response) }
    }
  }

  private func encode(_ commit: Commit, _ state: ModelState) {
    completion.beginWork()
    let response = rendered(commit, state)
    completion.endWork()
    completion.respond(response)
  }

  private func refuse(_ failure: StoreUnavailable) {
    completion.respond(Problem(.storeUnavailable, failure.reason).response)
  }

  private func rendered(_ commit: Commit, _ state: borrowing ModelState) -> Response {
    var response = rendering(commit, state)
    response.fields[.keywayCursor] = writer.store.cursor(commit.revision).description
    return response
  }
}
