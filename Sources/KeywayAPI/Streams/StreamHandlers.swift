import HTTPServer
import HTTPTypes
import KeyValueModel
import KeyValueObserving
import ModelStore
import OrderedCollections

/// The routes of streams and cells, and those of objects and fetches for a client that accepts an event stream.
struct StreamHandlers: Sendable {
  let store: Store
  let streams: StreamRegistry
  let readiness: Readiness
  /// Where streams that resume wait for their turn, and those of live queries.
  private let resumptions: OpeningQueue
  private let queryOpenings: OpeningQueue

  init(store: Store, streams: StreamRegistry, readiness: Readiness) {
    self.store = store
    self.streams = streams
    self.readiness = readiness
    resumptions = OpeningQueue(label: "keyway.resumptions", limit: streams.limits.opening)
    queryOpenings = OpeningQueue(label: "keyway.queries", limit: streams.limits.opening)
  }

  // MARK: One object

  /// `GET /v1/objects/{Entity}/{id}`: its display keys.
  func openObject(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try openTopic(try context.reference(in: store.schema), keyPaths: nil, request, context.target)
  }

  /// `GET /v1/objects/{Entity}/{id}/{keyPath}`.
  func openKeyPaths(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try openTopic(
      try context.reference(in: store.schema), keyPaths: context.keyPaths, request, context.target)
  }

  private func openTopic(
    _ reference: Reference, keyPaths: [String]?, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    try target.allowOnly("options", "context", "since", "overflow")
    var options: ObservingOptions = [.new, .initial]
    if let names = target.list("options") {
      options = try ObservingOptions(names: names == [""] ? [] : names, mistake: .malformedQuery)
    }
    let topic = StreamRegistry.TopicRequest(
      object: reference, keyPaths: keyPaths, options: options,
      context: try target["context"].map { text throws(Problem) in try EchoedText(text, mistake: .malformedQuery) },
      cursor: target.cursor(of: request), overflow: try target.overflow())
    if request.method == .head {
      try store.withPublication { publication throws(Problem) in try streams.check(topic, publication) }
      return .response(Response(status: .ok, fields: .eventStream))
    }
    guard topic.cursor != nil else {
      return .stream(try streams.open(topic, in: store), fields: .eventStream)
    }
    return opening(in: resumptions) { () throws(Problem) in try streams.open(topic, in: store) }
  }

  // MARK: Waiting to be opened

  /// Answers with a stream that waits for its turn to be opened.
  private func opening(
    in queue: OpeningQueue, _ open: @escaping @Sendable () throws(Problem) -> EventStream
  ) -> HandlerResponse {
    .deferred { [readiness] completion in
      let isTaken = queue.submit {
        // A crowd that came and went must not be worked for.
        guard !completion.isAbandoned else {
          return completion.respond(Problem(.overloaded, "the client has left").response)
        }
        do throws(Problem) {
          try readiness.check()
          completion.become(try open(), fields: .eventStream)
        } catch {
          completion.respond(error.response)
        }
      }
      if !isTaken {
        completion.respond(Problem(.overloaded, "too many streams wait to be opened; try again").response)
      }
    }
  }

  // MARK: A live query

  /// The parameters of `GET /v1/objects/{Entity}` as a stream.
  func openQuery(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let target = context.target
    try target.allowOnly("filter", "sort", "section", "limit", "keys", "context", "since", "overflow")
    var words = Query.Words(entity: context[.entity])
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
    let asked = StreamRegistry.QueryRequest(
      query: query,
      context: try target["context"].map { text throws(Problem) in try EchoedText(text, mistake: .malformedQuery) },
      cursor: target.cursor(of: request), overflow: try target.overflow())
    if request.method == .head { return .response(Response(status: .ok, fields: .eventStream)) }
    return opening(in: queryOpenings) { () throws(Problem) in try open(asked) }
  }

  /// Evaluates a live query, where nobody watches it, and opens a stream of it.
  private func open(_ asked: StreamRegistry.QueryRequest) throws(Problem) -> EventStream {
    let query = asked.query
    if let after = streams.resumedRevision(asked.cursor, store.snapshot) {
      return try streams.resume(asked, after: after, in: store)
    }
    let prepared = try prepare([query])[query]
    var encoded: StreamRegistry.EncodedResults?
    let (result, snapshot) = store.withPublication { publication in
      (publication.queries.result(of: query), publication.snapshot)
    }
    if let result {
      encoded = streams.encodeResults(asked, result, snapshot)
    } else if let prepared {
      encoded = streams.encodeResults(asked, prepared)
    }
    return try store.withPublication { publication throws(Problem) in
      try streams.open(asked, prepared: prepared, encoded: encoded, &publication)
    }
  }

  // MARK: Many cells

  /// `GET /v1/streams`: every open stream.
  func list(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly("since", "overflow")
    return .response(.json(streams.describeStreams()))
  }

  /// `GET /v1/streams` as a stream: one without cells.
  func open(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly("since", "overflow")
    if request.method == .head { return .response(Response(status: .ok, fields: .eventStream)) }
    return try openCells([:], request, context.target)
  }

  /// `POST /v1/streams`: a stream with cells. It has one form, and `curl --json` asks for another: the `Accept` header may
  /// be disregarded (RFC 9110 §12.5.1).
  func post(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly("since", "overflow")
    return try openCells(try Self.cells(of: try Body.object(of: request)), request, context.target)
  }

  private func openCells(
    _ cells: [String: Value], _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    let cursor = target.cursor(of: request)
    let overflow = try target.overflow()
    guard !cells.isEmpty else {
      return .stream(
        try streams.openCells(cells, cursor: cursor, overflow: overflow, in: store), fields: .eventStream)
    }
    return opening(in: cursor == nil ? queryOpenings : resumptions) { () throws(Problem) in
      try streams.openCells(cells, cursor: cursor, overflow: overflow, in: store)
    }
  }

  /// Evaluates the queries that a request names before anything is locked.
  private func prepare(_ queries: Set<Query>) throws(Problem) -> [Query: PreparedQuery] {
    try Problem.translating { () throws(ModelError) in try store.prepare(queries) }
  }

  /// The bindings of a body `{"cells":{…}}`.
  private static func cells(of body: JSONObject) throws(Problem) -> [String: Value] {
    guard case .object(let cells)? = body["cells"], body.members.count == 1 else {
      throw Problem(.invalidValue, "the body is {\"cells\":{\"name\":{…}}}")
    }
    return Dictionary(uniqueKeysWithValues: cells.members.map { ($0.key, $0.value) })
  }

  /// `GET /v1/streams/{stream}`.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly()
    return .response(.json(try streams.describeStream(context[.stream])))
  }

  /// `DELETE /v1/streams/{stream}`.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly()
    try streams.endStream(context[.stream])
    return .response(Response(status: .noContent))
  }

  /// `GET /v1/streams/{stream}/cells`.
  func getCells(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly()
    return .response(.json(try streams.describeCells(context[.stream], cell: nil)))
  }

  /// `GET /v1/streams/{stream}/cells/{cell}`.
  func getCell(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly()
    return .response(.json(try streams.describeCells(context[.stream], cell: context[.cell])))
  }

  /// `DELETE /v1/streams/{stream}/cells`.
  func deleteCells(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try endCells(nil, context)
  }

  /// `DELETE /v1/streams/{stream}/cells/{cell}`.
  func deleteCell(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try endCells(context[.cell], context)
  }

  private func endCells(_ cell: String?, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly()
    try store.withPublication { publication throws(Problem) in
      try streams.endCells(context[.stream], cell: cell, &publication)
    }
    return .response(Response(status: .noContent))
  }

  /// `PUT /v1/streams/{stream}/cells`: binds the cells that the body names, and ends the others.
  func putCells(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try streams.requireCells(of: context[.stream])
    try context.target.allowOnly()
    let bindings = try Self.cells(of: try Body.object(of: request))
    let prepared = try prepare(try streams.queries(in: bindings, store.schema))
    let cells = try store.withPublication { publication throws(Problem) in
      try streams.bind(bindings, in: context[.stream], replacingAll: true, prepared: prepared, &publication)
    }
    var body = JSONObject()
    for (name, cell) in cells.sorted(by: { $0.key < $1.key }) { body[name] = .object(cell) }
    return .response(.json(["cells": .object(body)]))
  }

  /// `PUT /v1/streams/{stream}/cells/{cell}`: binds one cell.
  func putCell(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let cell = context[.cell]
    try streams.requireCells(of: context[.stream])
    try context.target.allowOnly()
    let binding = try Body.value(of: request)
    let prepared = try prepare(try streams.queries(in: [cell: binding], store.schema))
    let cells = try store.withPublication { publication throws(Problem) in
      try streams.bind([cell: binding], in: context[.stream], prepared: prepared, &publication)
    }
    return .response(.json(cells[cell] ?? [:]))
  }

  /// `PATCH /v1/streams/{stream}/cells/{cell}`: changes what the body names of a cell's binding.
  func patchCell(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let (stream, cell) = (context[.stream], context[.cell])
    try streams.requireCells(of: stream, cell)
    try context.target.allowOnly()
    let changes = try Body.value(of: request, types: [Body.json, Body.mergePatch])
    let prepared = try prepare(try streams.query(patching: cell, in: stream, changes, store.schema))
    return .response(
      .json(
        try store.withPublication { publication throws(Problem) in
          try streams.patch(cell, in: stream, changes, prepared: prepared, &publication)
        }))
  }
}
