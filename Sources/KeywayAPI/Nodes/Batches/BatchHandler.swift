import HTTPServer
import HTTPTypes

/// `POST /v1/nodes/writes`: writes that another node passes on, several at once.
///
/// Each goes the way of every request, through the router, with its own token, limits and counts. Nothing is believed
/// of it because it came so; who sends a batch needs no token for that, as little as for `Keyway-Request`.
struct BatchHandler: Sendable {
  /// Answers a batch. Throws `malformed-request` where the body is none.
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
      throw Problem(.malformedRequest, "a batch has one write or more, and none is in another")
    }
    return .deferred { completion in
      let answers = BatchAnswers(of: messages.count) { completion.respond($0) }
      for (index, message) in messages.enumerated() {
        carrier.handle(message, number: index, isAbandoned: { completion.isAbandoned }) {
          answers.add($0, at: index)
        }
      }
    }
  }

  /// Throws where a request is in a batch that is not what nodes pass on: a write, and with a name.
  static func check(_ request: borrowing Request, _ route: Route) throws(Problem) {
    guard request.isCarried else { return }
    guard route.isForwarded, request.method != .get, request.method != .head, request.method != .options else {
      throw Problem(.invalidValue, "a batch has writes alone, and \(request.method.rawValue) here is none")
    }
    guard request.header(.keywayRequest) != nil else {
      throw Problem(.invalidValue, "a write in a batch has Keyway-Request, by which nodes know it")
    }
  }
}
