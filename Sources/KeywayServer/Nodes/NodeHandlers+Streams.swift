import HTTPServer
import KeyValueModel
import Store

/// What nodes ask and tell each other of the streams that objects last with.
extension NodeHandlers {
  /// `GET /v1/nodes/streams/{stream}`: the number of a stream of this node that is there for who asks.
  func stream(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    guard let id = streams.services.names.id(of: context[.stream]), streams.isThere(id),
      context.requester.mayUse(id, of: streams)
    else { throw StreamRegistry.unknownStream }
    return .response(.json(["number": .integer(Int64(id.number))]))
  }

  /// `POST /v1/nodes/streams`: streams of the node that asks are gone for good, by their numbers. Answers with how many
  /// of them objects lasted with.
  func end(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    let body = try Body.object(of: request)
    guard case .array(let elements)? = body["ended"], body.members.count == 1, elements.count <= StreamEnds.most else {
      throw Problem(.invalidValue, "the body is {\"ended\":[…]} with at most \(StreamEnds.most) numbers of streams")
    }
    var ended: Set<UInt64> = []
    for element in elements {
      guard case .integer(let number) = element, number > 0 else {
        throw Problem(.invalidValue, "'ended' has \(element.json), which is no number of a stream")
      }
      ended.insert(UInt64(number))
    }
    return .response(.json(["ended": .integer(Int64(StreamLeases(of: store).end(ended)))]))
  }
}
