internal import HTTPServer
internal import HTTPTypes
internal import KeyValueModel
internal import KeyValueObserving
internal import ModelStore
internal import OrderedCollections

/// The routes of streams and cells.
extension KeywayAPI {
  /// The head of every stream. Nothing on the way may keep or change it.
  static let streamFields: HTTPFields = [
    .contentType: "text/event-stream; charset=utf-8",
    .cacheControl: "no-store, no-transform",
    .accelBuffering: "no",
  ]

  // MARK: One object

  func openTopic(
    _ reference: Reference, keyPaths: [String]?, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    try target.allowOnly("options", "context", "since", "overflow")
    var options: ObservingOptions = [.new, .initial]
    if let names = target.list("options") {
      options = try ObservingOptions(names: names == [""] ? [] : names, mistake: .malformedQuery)
    }
    let topic = ObjectStreamRequest(
      object: reference, keyPaths: keyPaths, options: options,
      context: try target["context"].map { text throws(Problem) in try EchoedText(text, mistake: .malformedQuery) },
      cursor: cursor(of: request, target), overflow: try overflow(target))
    try checkOpen()
    if request.method == .head {
      try objectStreams.check(topic, in: store)
      return .response(Response(status: .ok, fields: Self.streamFields))
    }
    guard topic.cursor != nil else {
      return .stream(try objectStreams.open(topic, in: store), fields: Self.streamFields)
    }
    return try opening(in: resumptions, request, target) { api throws(Problem) in
      try api.objectStreams.open(topic, in: api.store)
    }
  }

  // MARK: Waiting to be opened

  /// Answers with a stream that waits for its turn to be opened.
  private func opening(
    in queue: OpeningQueue, _ request: borrowing Request, _ target: Target,
    _ open: @escaping @Sendable (KeywayAPI) throws(Problem) -> EventStream
  ) throws(Problem) -> HandlerResponse {
    let method = request.method
    let route = Route(target.segments)
    return .deferred { [self] completion in
      let respond = { @Sendable [requests] (problem: Problem) in
        let response = problem.response
        requests.count(method, route, status: response.status.code)
        completion.respond(response)
      }
      let isTaken = queue.submit { [self] in
        // A crowd that came and went must not be worked for.
        guard !completion.isAbandoned else {
          return respond(Problem(.overloaded, "the client has left"))
        }
        do throws(Problem) {
          if isDraining { throw Problem(.draining, "the server is about to stop") }
          let stream = try open(self)
          requests.count(method, route, status: 200)
          completion.become(stream, fields: Self.streamFields)
        } catch {
          respond(error)
        }
      }
      if !isTaken { respond(Problem(.overloaded, "too many streams wait to be opened; try again")) }
    }
  }

  // MARK: A live query

  /// The parameters of `GET /v1/objects/{Entity}` as a stream.
  func openQuery(_ name: String, _ request: borrowing Request, _ target: Target) throws(Problem) -> HandlerResponse {
    try target.allowOnly("filter", "sort", "section", "limit", "keys", "context", "since", "overflow")
    var words = Query.Words(entity: name)
    words.filter = target["filter"]
    words.sort = target["sort"]
    words.section = target["section"]
    words.keys = target.list("keys")
    if let text = target["limit"] {
      guard let limit = Int(text), limit >= 1 else {
        throw Problem(.malformedQuery, "limit is a whole number from 1")
      }
      words.limit = limit
    }
    let query = try Problem.translating { () throws(ModelError) in try Query(words, in: store.schema) }
    let cursor = cursor(of: request, target)
    let asked = QueryStreamRequest(
      query: query,
      context: try target["context"].map { text throws(Problem) in try EchoedText(text, mistake: .malformedQuery) },
      cursor: cursor, overflow: try overflow(target))
    try checkOpen()
    if request.method == .head { return .response(Response(status: .ok, fields: Self.streamFields)) }
    return try opening(in: queryOpenings, request, target) { api throws(Problem) in
      try api.queryStreams.open(asked, in: api.store)
    }
  }

  /// What becomes of a stream whose reader is slow: `?overflow=coalesce`, the default, or `disconnect`.
  func overflow(_ target: Target) throws(Problem) -> OverflowPolicy {
    switch target["overflow"] {
    case nil, "coalesce": return .coalesce
    case "disconnect": return .disconnect
    default: throw Problem(.malformedQuery, "overflow is coalesce or disconnect")
    }
  }

  /// The header wins over the parameter, since a client that reconnects by itself can only set the header.
  func cursor(of request: borrowing Request, _ target: Target) -> String? {
    // An EventSource that has no id yet sends none; an empty one means the same.
    request.header(.lastEventID).flatMap { $0.isEmpty ? nil : $0 } ?? target["since"]
  }

  private func checkOpen() throws(Problem) {
    if isDraining { throw Problem(.draining, "the server is about to stop") }
  }

  // MARK: Many cells

  func getStreams(_ request: borrowing Request, _ target: Target) throws(Problem) -> HandlerResponse {
    try target.allowOnly("since", "overflow")
    if try form(of: request) == .json { return .response(json(streams.describeStreams())) }
    try checkOpen()
    if request.method == .head { return .response(Response(status: .ok, fields: Self.streamFields)) }
    return try openCells([:], request, target)
  }

  func postStreams(_ request: borrowing Request, _ target: Target) throws(Problem) -> HandlerResponse {
    try target.allowOnly("since", "overflow")
    // There is one form, and whoever uses `curl --json` asks for another: the header may be disregarded (RFC 9110
    // §12.5.1).
    let body = try Body.object(of: request)
    try checkOpen()
    return try openCells(try Self.cells(of: body), request, target)
  }

  private func openCells(
    _ cells: [String: Value], _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    let cursor = cursor(of: request, target)
    let overflow = try overflow(target)
    guard !cells.isEmpty else {
      return .stream(
        try cellStreams.open(cells, cursor: cursor, overflow: overflow, in: store), fields: Self.streamFields)
    }
    return try opening(in: cursor == nil ? queryOpenings : resumptions, request, target) { api throws(Problem) in
      try api.cellStreams.open(cells, cursor: cursor, overflow: overflow, in: api.store)
    }
  }

  /// The bindings of a body `{"cells":{…}}`.
  private static func cells(of body: JSONObject) throws(Problem) -> [String: Value] {
    guard case .object(let cells)? = body["cells"], body.members.count == 1 else {
      throw Problem(.invalidValue, "the body is {\"cells\":{\"name\":{…}}}")
    }
    return Dictionary(uniqueKeysWithValues: cells.members.map { ($0.key, $0.value) })
  }

  func getStream(_ name: String, _ target: Target) throws(Problem) -> HandlerResponse {
    try target.allowOnly()
    return .response(json(try streams.describeStream(name)))
  }

  func deleteStream(_ name: String, _ target: Target) throws(Problem) -> HandlerResponse {
    try target.allowOnly()
    try streams.endStream(name)
    return .response(Response(status: .noContent))
  }

  func getCells(_ stream: String, _ cell: String?, _ target: Target) throws(Problem) -> HandlerResponse {
    try target.allowOnly()
    return .response(json(try cellStreams.describe(cell, in: stream)))
  }

  func deleteCells(_ stream: String, _ cell: String?, _ target: Target) throws(Problem) -> HandlerResponse {
    try target.allowOnly()
    try cellStreams.end(cell, in: stream, store)
    return .response(Response(status: .noContent))
  }

  func putCells(_ stream: String, _ request: borrowing Request, _ target: Target) throws(Problem) -> HandlerResponse {
    try target.allowOnly()
    try cellStreams.require(stream)
    let bindings = try Self.cells(of: try Body.object(of: request))
    return .response(
      json(["cells": .object(try cellStreams.bind(bindings, in: stream, replacingAll: true, store))]))
  }

  func putCell(
    _ stream: String, _ cell: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    try target.allowOnly()
    try cellStreams.require(stream)
    let bound = try cellStreams.bind([cell: try Body.value(of: request)], in: stream, store)
    guard case .object(let body)? = bound[cell] else { return .response(json([:])) }
    return .response(json(body))
  }

  func patchCell(
    _ stream: String, _ cell: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    try target.allowOnly()
    _ = try cellStreams.describe(cell, in: stream)
    let changes = try Body.value(of: request, types: [Body.json, Body.mergePatch])
    return .response(json(try cellStreams.patch(cell, in: stream, changes, store)))
  }
}
