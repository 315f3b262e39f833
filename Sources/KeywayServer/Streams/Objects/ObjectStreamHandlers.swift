import HTTPServer
import HTTPTypes
import KeyValueModel
import KeyValueObserving
import Store

/// `GET` of an object, and of key paths, for a client that accepts an event stream.
struct ObjectStreamHandlers: Sendable {
  let store: Store
  let streams: ObjectStreams
  /// Where streams wait for their turn whose first values take work, and those that resume.
  let openings: OpeningQueue
  let resumptions: OpeningQueue

  /// `GET /v1/objects/{Entity}/{id}`: its display keys.
  func openObject(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try open(keyPaths: nil, request, context)
  }

  /// `GET /v1/objects/{Entity}/{id}/{keyPath}`.
  func openKeyPaths(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try open(keyPaths: context.keyPaths, request, context)
  }

  private func open(
    keyPaths: [String]?, _ request: borrowing Request, _ context: RequestContext
  ) throws(Problem) -> HandlerResponse {
    let target = context.target
    let object = try context.reference(in: store.schema)
    try context.checkParameters()
    var options: ObservingOptions = [.new, .initial]
    if let names = target.list("options") {
      options = try ObservingOptions(names: names == [""] ? [] : names, mistake: .malformedQuery)
    }
    let asked = ObjectStreamRequest(
      object: object, keyPaths: keyPaths, options: options, context: try target.context(),
      cursor: target.cursor(of: request), overflow: try target.overflow(), client: request.client,
      viewer: context.viewer)
    if request.method == .head {
      try streams.check(asked, in: store)
      return .response(Response(streamHead: .eventStream))
    }
    if asked.cursor == nil {
      do throws(Problem) {
        let stream = try streams.open(asked, in: store, steps: ObservedValues.stepsUnderLock)
        return .stream(stream, fields: .eventStream)
      } catch {
        // As with other readings, one that takes long is begun anew in its turn.
        guard error.code == .tooManySteps else { throw error }
      }
    }
    return (asked.cursor == nil ? openings : resumptions).response(to: request.client) {
      [streams, store] isAbandoned throws(Problem) in
      try streams.open(asked, in: store, isAbandoned)
    }
  }
}
