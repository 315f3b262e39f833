import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// `Idempotency-Key`: makes a retried `POST` apply once (draft-ietf-httpapi-idempotency-key-header).
///
/// It wraps every `POST` that writes, between the route and its handler, which does not know of it: a retry is
/// recognized before anything is looked up that may have changed since, and every response passes through it on its way
/// out.
struct IdempotentHandlers: Sendable {
  let store: IdempotencyStore
  let registry: PrometheusRegistry
  /// The store of the objects that repeated responses are about.
  let objects: Store

  /// Returns a handler that carries out a `POST` with `handle`, or repeats the response that was given before.
  func once(_ handle: @escaping Route.Handler) -> Route.Handler {
    { (request, context) throws(Problem) in
      guard let header = request.header(.idempotencyKey) else { return try handle(request, context) }
      let owner = context.requester.mark
      let key = try IdempotencyKey(header, of: owner)
      let idempotent = IdempotentRequest(
        key: key, fingerprint: RequestFingerprint(request), viewer: context.viewer.map(ViewerMark.init))
      let client = request.client
      if let response = try begin(idempotent, from: client, bodyBytes: request.body().count) {
        registry.increment(.idempotencyReplays)
        return .response(replayed(response, context))
      }
      do throws(Problem) {
        var context = context
        context.idempotency = idempotent
        return watched(try handle(request, context), key, of: client)
      } catch {
        store.abandon(key)
        throw error
      }
    }
  }

  /// Returns the response of another node to a request with a key that is under way here, or nil if there is none.
  func precedent(in context: RequestContext) -> Response? {
    context.idempotency.flatMap { store.precedent(of: $0) }.map { replayed($0, context) }
  }

  /// Returns the response to repeat, or nil if the request is the first with its key, which is under way from now on.
  private func begin(
    _ request: IdempotentRequest, from client: ClientAddress, bodyBytes: Int
  ) throws(Problem) -> Response? {
    let key = request.key
    switch store.begin(request, from: client, bodyBytes: bodyBytes) {
    case .first: return nil
    case .answered(let response): return response
    case .underWay:
      throw Problem(.idempotencyKeyInUse, "the request with Idempotency-Key '\(key.text)' is not answered yet")
    case .reused:
      throw Problem(
        .idempotencyKeyReused,
        "Idempotency-Key '\(key.text)' belongs to a request with another target, body, type, condition or writer")
    case .full:
      throw Problem(
        .overloaded,
        "the memory for Idempotency-Keys is full, and each key is kept for idempotency.seconds; nothing was changed")
    case .shareFull:
      throw Problem(
        .overloaded,
        "this client has used its share of the memory for Idempotency-Keys, and each key is kept for "
          + "idempotency.seconds; nothing was changed")
    case .tooLarge:
      throw Problem(
        .contentTooLarge, "the request with its Idempotency-Key exceeds a client's share of idempotency.bytes")
    }
  }

  /// Returns a response to repeat, marked as repeated, and without content if that may not be read any more.
  private func replayed(_ response: Response, _ context: RequestContext) -> Response {
    var response = mayStillRead(response, context) ? response : response.ofWhatMayNotBeRead()
    response.fields[.idempotencyReplayed] = "true"
    return response
  }

  /// Returns true if the requester may now read what the response is about. Objects that no longer exist do not count:
  /// the requester was told of them before.
  private func mayStillRead(_ response: Response, _ context: RequestContext) -> Bool {
    guard let viewer = context.viewer, !response.body.isEmpty else { return true }
    let state = objects.snapshot.state
    guard response.subjects(context).allSatisfy({ state.record($0) == nil || state.exists($0, for: viewer) }) else {
      return false
    }
    guard context.route.position(of: .keyPath) != nil, let owner = try? context.reference(in: objects.schema),
      let record = state.record(owner),
      let path = try? objects.schema.resolve(context[.keyPath], from: record.entity)
    else { return true }
    // A link in the key path may lead to an object that may not be read.
    return GuardedReader(state, for: viewer).value(of: owner, at: path) == state.value(of: owner, at: path)
  }

  /// Returns the response, which also ends the request of the key, whether or not there is still a client to receive
  /// it.
  private func watched(
    _ response: HandlerResponse, _ key: IdempotencyKey, of client: ClientAddress
  ) -> HandlerResponse {
    switch response {
    case .response(let now):
      store.end(key, of: client, with: now)
      return response
    case .deferred(let start):
      return .deferred { [store] completion in
        start(
          completion.preparing { response in
            store.end(key, of: client, with: response)
            return response
          })
      }
    case .stream:
      assertionFailure("a write answers with a response")
      store.abandon(key)
      return response
    }
  }
}

extension Response {
  /// Returns the response to a write for a requester who may not read what was written: the same, without content and
  /// entity tag.
  func ofWhatMayNotBeRead() -> Response {
    var response = self
    response.body = []
    response.fields[.contentType] = nil
    response.fields[.eTag] = nil
    if status == .ok { response.status = .noContent }
    return response
  }

  /// Returns the objects that a response to a `POST`, made in a context, is about.
  fileprivate func subjects(_ context: RequestContext) -> [Reference] {
    if let id = context.route.position(of: .id) {
      return Reference(entity: context[.entity], id: context.target.segments[id]).map { [$0] } ?? []
    }
    if let location = fields[.location] {
      return Reference(String(location.trimmingPrefix("/v1/objects/"))).map { [$0] } ?? []
    }
    guard case .object(let answer)? = try? Value(json: body), case .array(let results)? = answer["results"] else {
      return []
    }
    return results.compactMap { result in
      guard case .object(let result) = result, case .string(let text)? = result["object"] else { return nil }
      return Reference(text)
    }
  }
}
