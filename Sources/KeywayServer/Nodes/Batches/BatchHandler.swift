import HTTPServer
import HTTPTypes
import Store

/// `POST /v1/nodes/writes`: writes that another node passes on, several at once.
///
/// Each goes the way of every request, through the router, with its own token, limits and counts. That a node sends it
/// says only that its name, `Keyway-Request`, can be believed.
struct BatchHandler: Sendable {
  /// The journal that this node shares with the one that sends the batch; nil where it shares none.
  let journal: (any SharedJournal)?

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

  /// Returns the place that the sender of a batch has come to, if it says so and has the same epoch: it gets the
  /// records since.
  private func place(named request: borrowing Request) -> HandedPlace? {
    guard let field = request.header(.keywayRecords), let place = HandedPlace(field),
      place.cursor.epoch == journal?.identity.epoch
    else { return nil }
    return place
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
