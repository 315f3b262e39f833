internal import HTTPServer
internal import HTTPTypes
internal import Metrics
internal import ModelStore

/// `Idempotency-Key`: makes a retried `POST` apply once (draft-ietf-httpapi-idempotency-key-header).
///
/// It stands around every `POST` that writes, between the routes and what they do, which knows nothing of it: a retry is
/// recognised before anything is looked up that may have changed since, and every answer passes by here on its way out.
extension KeywayAPI {
  /// Remembers the answers that were kept with commits; `now` is in milliseconds since 1970.
  func restore(_ attachments: [StoredAttachment], at now: Int64) {
    idempotency.restore(
      attachments.compactMap { attachment in
        guard let answer = StoredResponse(attachment.bytes) else { return nil }
        return (answer, UInt64(max(0, now - attachment.milliseconds)) / 1000)
      })
  }

  /// Carries out a `POST` that writes, or gives the answer again that it was given before.
  func performOnce(_ route: Route, _ request: borrowing Request, _ target: Target) throws(Problem) -> HandlerResponse {
    guard let header = request.header(.idempotencyKey) else { return try perform(route, .post, request, target) }
    let key = try IdempotencyKey(header)
    if let response = try begin(key, RequestFingerprint(request)) {
      Counter(label: "keyway_idempotency_replays_total", factory: registry).increment()
      return .response(response)
    }
    let answer: HandlerResponse
    do throws(Problem) {
      answer = try perform(route, .post, request, target)
    } catch {
      idempotency.abandon(key)
      throw error
    }
    return watched(answer, key)
  }

  /// The answer to give again; nil where the request is the first with its key, which is under way from now on.
  private func begin(_ key: IdempotencyKey, _ fingerprint: RequestFingerprint) throws(Problem) -> Response? {
    switch idempotency.begin(key, fingerprint) {
    case .first: return nil
    case .answered(var response):
      response.fields[.idempotencyReplayed] = "true"
      return response
    case .underWay:
      throw Problem(.idempotencyKeyInUse, "the request with Idempotency-Key '\(key.text)' is not answered yet")
    case .reused:
      throw Problem(
        .idempotencyKeyReused,
        "Idempotency-Key '\(key.text)' belongs to a request of another target, body, type, condition or writer")
    case .full:
      throw Problem(.overloaded, "the requests with an Idempotency-Key that are under way fill the memory of keys")
    case .tooLarge:
      throw Problem(.contentTooLarge, "with its Idempotency-Key the request is over idempotency.bytes")
    }
  }

  /// The answer, with the key's fate tied to what comes of it, whether or not there is still a client to hear of it.
  private func watched(_ answer: HandlerResponse, _ key: IdempotencyKey) -> HandlerResponse {
    switch answer {
    case .response(let response):
      idempotency.end(key, with: response)
      return answer
    case .deferred(let start):
      return .deferred { [idempotency] completion in
        start(
          completion.preparing { response in
            idempotency.end(key, with: response)
            return response
          })
      }
    case .stream:
      assertionFailure("a write answers with a response")
      idempotency.abandon(key)
      return answer
    }
  }
}
