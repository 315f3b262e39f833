import HTTPServer
import HTTPTypes
import ModelStore
import Tokens

/// `Idempotency-Key`: makes a retried `POST` apply once (draft-ietf-httpapi-idempotency-key-header).
///
/// It stands around every `POST` that writes, between the route and its handler, which knows nothing of it: a retry is
/// recognised before anything is looked up that may have changed since, and every response passes by here on its way
/// out.
struct IdempotentHandlers: Sendable {
  let store: IdempotencyStore
  let registry: PrometheusRegistry

  /// A handler that carries out a `POST` with `handle`, or gives the response again that it was given before.
  func once(_ handle: @escaping Route.Handler) -> Route.Handler {
    { (request, context) throws(Problem) in
      guard let header = request.header(.idempotencyKey) else { return try handle(request, context) }
      let owner = context.requester.mark
      let key = try IdempotencyKey(header, of: owner)
      let idempotent = IdempotentRequest(key: key, fingerprint: RequestFingerprint(request))
      let client = request.client
      if let response = try begin(idempotent, from: client, bodyBytes: request.body().count) {
        registry.increment(.idempotencyReplays)
        return .response(response)
      }
      do throws(Problem) {
        var context = context
        context.idempotency = idempotent
        let passed = context.precedent
        context.precedent = { [store] in passed?() ?? Self.replayed(store.precedent(of: idempotent)) }
        return watched(try handle(request, context), key, of: client)
      } catch {
        store.abandon(key)
        throw error
      }
    }
  }

  /// The response to give again; nil where the request is the first with its key, which is under way from now on.
  private func begin(
    _ request: IdempotentRequest, from client: ClientAddress, bodyBytes: Int
  ) throws(Problem) -> Response? {
    let key = request.key
    switch store.begin(request, from: client, bodyBytes: bodyBytes) {
    case .first: return nil
    case .answered(let response): return Self.replayed(response)
    case .underWay:
      throw Problem(.idempotencyKeyInUse, "the request with Idempotency-Key '\(key.text)' is not answered yet")
    case .reused:
      throw Problem(
        .idempotencyKeyReused,
        "Idempotency-Key '\(key.text)' belongs to a request of another target, body, type, condition or writer")
    case .full:
      throw Problem(
        .overloaded,
        "the memory of Idempotency-Keys is full, and none is forgotten within idempotency.seconds; nothing was changed")
    case .shareFull:
      throw Problem(
        .overloaded,
        "this client has its share of the memory of Idempotency-Keys, and none is forgotten within "
          + "idempotency.seconds; nothing was changed")
    case .tooLarge:
      throw Problem(.contentTooLarge, "with its Idempotency-Key the request is over a client's idempotency.bytes")
    }
  }

  /// A response that is given again, which says so.
  private static func replayed(_ response: Response?) -> Response? {
    var response = response
    response?.fields[.idempotencyReplayed] = "true"
    return response
  }

  /// The response, with the key's fate tied to it, whether or not there is still a client to receive it.
  private func watched(
    _ response: HandlerResponse, _ key: IdempotencyKey, of client: ClientAddress
  ) -> HandlerResponse {
    switch response {
    case .response(let now):
      store.end(key, of: client, with: now)
      return response
    case .postponed: return response
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
