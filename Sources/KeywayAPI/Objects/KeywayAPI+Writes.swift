internal import HTTPServer
internal import HTTPTypes
internal import KeyValueModel
internal import ModelStore

/// Objects and their key paths: writing. Every write is one transaction.
extension KeywayAPI {
  /// What a write is about, for its conditions and for the present `ETag`.
  enum Subject: Sendable {
    case object(Reference)
    case keyPath(Reference, String)
    /// An object that gets its id from the server.
    case creation(String)
    /// Any number of objects.
    case transaction

    var reference: Reference? {
      switch self {
      case .object(let reference), .keyPath(let reference, _): reference
      case .creation, .transaction: nil
      }
    }

    /// The resource that is written.
    var route: Route {
      switch self {
      case .object(let reference): .object(reference.entity, reference.id)
      case .keyPath(let reference, let path): .keyPath(reference.entity, reference.id, path)
      case .creation(let entity): .objects(entity)
      case .transaction: .transactions
      }
    }
  }

  // MARK: Objects

  func createObject(_ entity: String, _ request: borrowing Request, _ target: Target) throws(Problem) -> HandlerResponse
  {
    try Problem.translating { () throws(ModelError) in _ = try store.schema.requireEntity(entity) }
    try target.allowOnly()
    let body = try Body.object(of: request)
    guard let reference = Reference(entity: entity, id: makeID()) else {
      throw Problem(.internalError, "no id could be made")
    }
    return try write([.create(reference, body)], about: .creation(entity), request) { api, _, state in
      var response = api.object(reference, in: state, status: .created)
      response.fields[.location] = "/v1/objects/\(reference)"
      return response
    }
  }

  func putObject(
    _ entity: String, _ id: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    try Problem.translating { () throws(ModelError) in _ = try store.schema.requireEntity(entity) }
    guard let reference = Reference(entity: entity, id: id) else {
      throw Problem(.invalidValue, "'\(id)' is no id: those have 1 to 128 of A-Z a-z 0-9 . _ ~ -")
    }
    try target.allowOnly()
    let body = try Body.object(of: request)
    return try write([.put(reference, body)], about: .object(reference), request) { api, commit, state in
      let isNew = commit.before.contains { $0.object == reference && $0.record == nil }
      var response = api.object(reference, in: state, status: isNew ? .created : .ok)
      if isNew { response.fields[.location] = "/v1/objects/\(reference)" }
      return response
    }
  }

  func patchObject(
    _ entity: String, _ id: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    let reference = try reference(entity, id)
    try target.allowOnly()
    let operation: Operation
    if try Body.mediaType(of: request, among: Body.patchTypes) == Body.jsonPatch {
      operation = .jsonPatch(reference, try Body.jsonPatch(of: request, operationLimit: limits.patchOperations))
    } else {
      operation = .patch(reference, try Body.object(of: request, types: Body.patchTypes))
    }
    return try write([operation], about: .object(reference), request) { api, _, state in
      api.object(reference, in: state, status: .ok)
    }
  }

  func deleteObject(
    _ entity: String, _ id: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    let reference = try reference(entity, id)
    try target.allowOnly()
    return try write([.delete(reference)], about: .object(reference), request) { _, _, _ in
      Response(status: .noContent, fields: [:], body: [])
    }
  }

  // MARK: Key paths

  func putKeyPath(
    _ entity: String, _ id: String, _ keyPath: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    let reference = try reference(entity, id)
    try target.allowOnly("index")
    if let indexes = try target.indexes() { return try replaceMembers(of: reference, keyPath, at: indexes, request) }
    let value = try Body.value(of: request)
    return try writeValue(.set(reference, keyPath: keyPath, value), reference, keyPath, request)
  }

  func deleteKeyPath(
    _ entity: String, _ id: String, _ keyPath: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    let reference = try reference(entity, id)
    try target.allowOnly("index", "object", "value")
    if let removal = try removal(reference, keyPath, target) {
      return try writeValue(removal, reference, keyPath, request)
    }
    // A to-many is never null: it is emptied.
    let nothing: Value = store.schema.memberType(of: keyPath, from: reference) == nil ? .null : .array([])
    let operation = Operation.set(reference, keyPath: keyPath, nothing)
    return try write([operation], about: .keyPath(reference, keyPath), request) { api, _, state in
      let response = api.value(keyPath, of: reference, in: state)
      return Response(status: .noContent, fields: [.eTag: response.fields[.eTag] ?? ""], body: [])
    }
  }

  // MARK: The way of a write

  /// Hands a transaction to the writer. `answer` is called on the writer with the state that the transaction left; what
  /// it gives is sent once the commit is published.
  func write(
    _ operations: [Operation], about subject: Subject, _ request: borrowing Request,
    answer: @escaping @Sendable (KeywayAPI, Commit, borrowing ModelState) -> Response
  ) throws(Problem) -> HandlerResponse {
    let size = operations.reduce(0) { $0 + $1.size }
    guard size <= limits.transactionOperations else {
      throw Problem(
        .tooManyOperations,
        "\(size) operations and objects made in place; a transaction has at most \(limits.transactionOperations)")
    }
    let transaction = Transaction(
      operations, preconditions: try preconditions(of: request, about: subject), writer: try writer(of: request))
    let method = request.method
    let respond = { @Sendable [requests] (completion: Completion, response: Response) in
      requests.count(method, subject.route, status: response.status.code)
      completion.respond(response)
    }
    let written: @Sendable (Commit, borrowing ModelState) -> Response = { [self] commit, state in
      var response = answer(self, commit, state)
      response.fields[.keywayCursor] = cursor(commit.revision)
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
          respond(completion, failure.map { Problem(.storeUnavailable, $0.reason).response } ?? response)
        }
      }
      if !isAccepted {
        respond(completion, Problem(.overloaded, "too many writes wait; try again").response)
      }
    }
  }

  /// What is kept with the commit of a `POST` with an `Idempotency-Key`: its answer, for retries after a restart.
  private func attachment(
    of request: borrowing Request, _ written: @escaping @Sendable (Commit, borrowing ModelState) -> Response
  ) throws(Problem) -> Store.Attachment? {
    guard request.method == .post, let header = request.header(.idempotencyKey) else { return nil }
    let key = try IdempotencyKey(header)
    let fingerprint = RequestFingerprint(request)
    return { commit, state in
      StoredResponse(key: key, fingerprint: fingerprint, response: written(commit, state)).text
    }
  }

  private func refusal(_ error: ModelError, about subject: Subject, _ state: borrowing ModelState) -> Response {
    let problem = Problem(error)
    guard error.code == .staleRevision, let reference = subject.reference,
      let record = state.record(reference)
    else { return problem.response }
    var revision = state.revision(of: reference)
    if case .keyPath(_, let text) = subject, let path = try? store.schema.resolve(text, from: record.entity) {
      revision = state.revision(of: reference, along: path)
    }
    return problem.with(.eTag, entityTag(revision)).response
  }

  private func preconditions(
    of request: borrowing Request, about subject: Subject
  ) throws(Problem) -> [Precondition] {
    guard let reference = subject.reference else {
      guard request.header(.ifMatch) == nil else {
        throw Problem(.staleRevision, "what is written has no ETag that If-Match could hold for")
      }
      return []
    }
    guard request.header(.ifMatch) != nil || request.header(.ifNoneMatch) != nil else { return [] }
    var keyPath: String?
    if case .keyPath(_, let text) = subject {
      // What cannot be written anyway is refused for that, whatever the conditions say (RFC 9110 §13.2.1): to look at a
      // path through one to-many after the other could take the writer very long.
      guard isWritable(text, of: reference) else { return [] }
      keyPath = text
    }
    var preconditions: [Precondition] = []
    if let text = request.header(.ifNoneMatch) {
      let condition = try EntityTagCondition(text, header: "If-None-Match")
      if case .any = condition {
        preconditions.append(.absent(reference))
      } else {
        preconditions.append(.differs(reference, keyPath: keyPath, from: condition.revisions(of: store.epoch)))
      }
    }
    guard let text = request.header(.ifMatch) else { return preconditions }
    let condition = try EntityTagCondition(text, header: "If-Match")
    // What is not there is `unknown-object` to every method but the one that would make it (RFC 9110 §13.2.1).
    if request.method == .put, keyPath == nil { preconditions.append(.exists(reference)) }
    if case .any = condition { return preconditions }
    // Where no tag can hold, revision 0 says so: nothing that is there is unchanged since then.
    let since = condition.latestRevision(of: store.epoch, upTo: store.snapshot.revision) ?? 0
    let unchanged = keyPath.map { Precondition.unchangedKeyPath(reference, $0, since: since) }
    return preconditions + [unchanged ?? .unchangedObject(reference, since: since)]
  }

  /// Whether a key path is one of those that can be written: without an operator, and not through a to-many.
  private func isWritable(_ keyPath: String, of reference: Reference) -> Bool {
    guard let entity = store.schema.entity(named: reference.entity),
      let path = try? store.schema.resolveObservable(keyPath, from: entity)
    else { return false }
    return path.operation == nil
  }

  private func writer(of request: borrowing Request) throws(Problem) -> String? {
    guard let name = request.header(.keywayWriter) else { return nil }
    guard (1...128).contains(name.utf8.count), name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw Problem(.malformedQuery, "Keyway-Writer is 1 to 128 visible ASCII characters")
    }
    return name
  }

  private func object(
    _ reference: Reference, in state: borrowing ModelState, status: HTTPResponse.Status
  ) -> Response {
    var bytes: [UInt8] = []
    guard let record = state.record(reference) else { return Response(status: status) }
    let tag = state.appendJSON(of: reference, record, to: &bytes)
    return Response(status: status, fields: [.contentType: Body.json, .eTag: entityTag(tag)], body: bytes)
  }

  func value(_ keyPath: String, of reference: Reference, in state: borrowing ModelState) -> Response {
    guard let record = state.record(reference), let path = try? store.schema.resolve(keyPath, from: record.entity)
    else { return Response(status: .ok, fields: [:], body: []) }
    var bytes: [UInt8] = []
    state.value(of: reference, at: path).appendJSON(to: &bytes)
    let tag = entityTag(state.revision(of: reference, along: path))
    return Response(status: .ok, fields: [.contentType: Body.json, .eTag: tag], body: bytes)
  }
}
