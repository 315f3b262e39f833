import HTTPServer
import HTTPTypes
import KeyValueModel
import ModelStore

/// The way of a write from a request to the store and back. Every write is one transaction.
struct TransactionWriter: Sendable {
  /// What a write is about, for its conditions and for the present `ETag`.
  enum Subject: Sendable {
    case object(Reference)
    case keyPath(Reference, String)
    /// What has no `ETag`: an object that gets its id from the server, or any number of objects.
    case collection
    case transaction

    var reference: Reference? {
      switch self {
      case .object(let reference), .keyPath(let reference, _): reference
      case .collection, .transaction: nil
      }
    }
  }

  /// Makes the response to a write that succeeded, from its commit and the state that the transaction left. Called once,
  /// on the writer's thread.
  typealias Rendering = @Sendable (_ commit: Commit, _ state: borrowing ModelState) -> Response

  let store: Store
  let limits: RequestLimits

  /// Hands a transaction to the store. What `rendering` gives is sent once the commit is published.
  func write(
    _ operations: [Operation], about subject: Subject, _ request: borrowing Request, rendering: @escaping Rendering
  ) throws(Problem) -> HandlerResponse {
    let size = operations.reduce(0) { $0 + $1.size }
    guard size <= limits.transactionOperations else {
      throw Problem(
        .tooManyOperations,
        "\(size) operations and objects made in place; a transaction has at most \(limits.transactionOperations)")
    }
    let transaction = Transaction(
      operations, preconditions: try preconditions(of: request, about: subject), writer: try Self.writer(of: request))
    let written: Rendering = { [store] commit, state in
      var response = rendering(commit, state)
      response.fields[.keywayCursor] = store.cursor(commit.revision).description
      return response
    }
    let attachment = try attachment(of: request, written)
    return .deferred { [self] completion in
      let isAccepted = store.submit(transaction, attachment: attachment) { [self] outcome, state in
        let response: Response
        switch outcome {
        case .success(let commit):
          response = written(commit, state)
        case .failure(var error):
          // The model names the operation only where there are several; a transaction of one has an index too.
          if case .transaction = subject, operations.count == 1 { error.operation = 0 }
          response = refusal(error, about: subject, state)
        }
        return { failure in
          completion.respond(failure.map { Problem(.storeUnavailable, $0.reason).response } ?? response)
        }
      }
      if !isAccepted {
        completion.respond(Problem(.overloaded, "too many writes wait; try again").response)
      }
    }
  }

  /// What is kept with the commit of a `POST` with an `Idempotency-Key`: its response, for retries after a restart.
  private func attachment(
    of request: borrowing Request, _ written: @escaping Rendering
  ) throws(Problem) -> Store.Attachment? {
    guard request.method == .post, let header = request.header(.idempotencyKey) else { return nil }
    let key = try IdempotencyKey(header)
    let fingerprint = RequestFingerprint(request)
    return { commit, state in
      StoredResponse(key: key, fingerprint: fingerprint, response: written(commit, state)).text
    }
  }

  /// The response to what the model refuses; where a condition failed, with the present `ETag`.
  private func refusal(_ error: ModelError, about subject: Subject, _ state: borrowing ModelState) -> Response {
    let problem = Problem(error)
    guard error.code == .staleRevision, let reference = subject.reference,
      let record = state.record(reference)
    else { return problem.response }
    var revision = state.revision(of: reference)
    if case .keyPath(_, let text) = subject, let path = try? store.schema.resolve(text, from: record.entity) {
      revision = state.revision(of: reference, along: path)
    }
    return problem.with(.eTag, store.cursor(revision).entityTag).response
  }

  private static func writer(of request: borrowing Request) throws(Problem) -> String? {
    guard let name = request.header(.keywayWriter) else { return nil }
    guard (1...128).contains(name.utf8.count), name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw Problem(.malformedQuery, "Keyway-Writer is 1 to 128 visible ASCII characters")
    }
    return name
  }
}
