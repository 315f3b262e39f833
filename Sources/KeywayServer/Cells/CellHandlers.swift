import HTTPServer
import HTTPTypes
import KeyValueModel
import OrderedCollections
import Store

/// The routes of streams with cells.
struct CellHandlers: Sendable {
  let store: Store
  let streams: CellStreams
  /// The queue of streams that begin with cells; `resumptions` is that of streams that resume.
  let openings: OpeningQueue
  let resumptions: OpeningQueue
  let readings: Readings

  /// `GET /v1/streams` as a stream: one without cells.
  func open(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    if request.method == .head { return .response(Response(streamHead: .eventStream)) }
    return try open([:], request, context)
  }

  /// `POST /v1/streams`: a stream with cells. The response has only this form, and `curl --json` asks for another: the
  /// `Accept` header may be disregarded (RFC 9110 §12.5.1).
  func openWithCells(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    return try open(try Self.bindings(of: request), request, context)
  }

  /// `GET /v1/streams/{stream}` as a stream: resumes a stream whose connection was cut, or takes it over.
  func resume(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let name = context[.stream]
    try streams.requireResumable(name)
    try context.checkParameters()
    if request.method == .head { return .response(Response(streamHead: .eventStream)) }
    let subject = context.requester.identity?.subject
    let asked = CellStreamOpening.Request(
      cursor: context.target.cursor(of: request), overflow: try context.target.overflow(), client: request.client,
      viewer: try streams.viewer(of: name, for: context.viewer, subject))
    return resumptions.response(to: request.client) { [streams, store] isAbandoned throws(Problem) in
      try streams.resume(name, asked, in: store, isAbandoned)
    }
  }

  private func open(
    _ bindings: [String: Value], _ request: borrowing Request, _ context: RequestContext
  ) throws(Problem) -> HandlerResponse {
    let cursor = context.target.cursor(of: request)
    let overflow = try context.target.overflow()
    let viewer = context.viewer
    let client = request.client
    let open: OpeningQueue.Opening = { [streams, store] isAbandoned throws(Problem) in
      try streams.open(bindings, cursor: cursor, overflow: overflow, for: client, viewer, in: store, isAbandoned)
    }
    guard !bindings.isEmpty else { return .stream(try open { false }, fields: .eventStream) }
    return (cursor == nil ? openings : resumptions).response(to: client, open)
  }

  /// `GET /v1/streams/{stream}/cells`.
  func getAll(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    return try readings.response(to: request, isLong: true) {
      [streams, name = context[.stream]] budget throws(Problem) in
      try .json(try streams.describe(nil, in: name), within: budget)
    }
  }

  /// `GET /v1/streams/{stream}/cells/{cell}`.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    let (stream, cell) = (context[.stream], context[.cell])
    return try readings.response(to: request) { [streams] budget throws(Problem) in
      try .json(try streams.describe(cell, in: stream), within: budget)
    }
  }

  /// `PUT /v1/streams/{stream}/cells`: binds the cells that the body names, and ends the others.
  func putAll(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let stream = context[.stream]
    try streams.require(stream)
    try context.checkParameters()
    let bindings = try Self.bindings(of: request)
    return try readings.response(to: request) { [streams, store] budget throws(Problem) in
      .json(["cells": .object(try streams.bindAll(bindings, in: stream, store, within: budget.work))])
    }
  }

  /// `PATCH /v1/streams/{stream}/cells`: changes the cells that the body names.
  func patchAll(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let stream = context[.stream]
    try streams.require(stream)
    try context.checkParameters()
    let bodies = try Self.bindings(of: request, types: [Body.json, Body.mergePatch])
    return try readings.response(to: request) { [streams, store] budget throws(Problem) in
      .json(["cells": .object(try streams.patchAll(bodies, in: stream, store, within: budget.work))])
    }
  }

  /// `PUT /v1/streams/{stream}/cells/{cell}`: binds one cell.
  func put(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let (stream, cell) = (context[.stream], context[.cell])
    try streams.require(stream)
    try context.checkParameters()
    let body = try Body.value(of: request)
    return try readings.response(to: request) { [streams, store] budget throws(Problem) in
      .json(try streams.bind(cell, to: body, in: stream, store, within: budget.work))
    }
  }

  /// `PATCH /v1/streams/{stream}/cells/{cell}`: changes the members of a cell's binding that the body names.
  func patch(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let (stream, cell) = (context[.stream], context[.cell])
    try streams.require(stream, cell)
    try context.checkParameters()
    let changes = try Body.value(of: request, types: [Body.json, Body.mergePatch])
    return try readings.response(to: request) { [streams, store] budget throws(Problem) in
      .json(try streams.patch(cell, in: stream, changes, store, within: budget.work))
    }
  }

  /// `DELETE /v1/streams/{stream}/cells`.
  func deleteAll(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try end(nil, context)
  }

  /// `DELETE /v1/streams/{stream}/cells/{cell}`.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try end(context[.cell], context)
  }

  private func end(_ cell: String?, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    try streams.end(cell, in: context[.stream], store)
    return .response(Response(status: .noContent))
  }

  /// Returns the bindings of a body `{"cells":{…}}`.
  private static func bindings(
    of request: borrowing Request, types: [String] = [Body.json]
  ) throws(Problem) -> [String: Value] {
    let body = try Body.object(of: request, types: types)
    guard case .object(let cells)? = body["cells"], body.members.count == 1 else {
      throw Problem(.invalidValue, "the body must be {\"cells\":{\"name\":{…}}}")
    }
    // ASCII names are equal as strings only if they are equal as members.
    try StreamServices.checkNames(cells.members.keys)
    return Dictionary(uniqueKeysWithValues: cells.members.map { ($0.key, $0.value) })
  }
}
