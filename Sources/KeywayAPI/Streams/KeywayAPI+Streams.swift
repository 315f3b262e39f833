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
  ) throws(Problem) -> Answer {
    try target.allowOnly("options", "context", "since")
    var options: ObservingOptions = [.new, .initial]
    if let names = target.list("options") {
      options = try ObservingOptions(names: names == [""] ? [] : names, mistake: .malformedQuery)
    }
    let topic = StreamRegistry.TopicRequest(
      object: reference, keyPaths: keyPaths, options: options,
      context: try target["context"].map { text throws(Problem) in try EchoedText(text, mistake: .malformedQuery) },
      cursor: cursor(of: request, target))
    try checkOpen()
    if request.method == .head {
      try store.withPublication { publication throws(Problem) in try streams.check(topic, publication) }
      return .response(Response(status: .ok, fields: Self.streamFields))
    }
    let stream = try store.withPublication { publication throws(Problem) in
      try streams.open(topic, &publication)
    }
    return .stream(stream, fields: Self.streamFields)
  }

  /// The header wins over the parameter, since a client that reconnects by itself can only set the header.
  private func cursor(of request: borrowing Request, _ target: Target) -> String? {
    // An EventSource that has no id yet sends none; an empty one means the same.
    request.header(.lastEventID).flatMap { $0.isEmpty ? nil : $0 } ?? target["since"]
  }

  private func checkOpen() throws(Problem) {
    if isDraining { throw Problem(.draining, "the server is about to stop") }
  }

  // MARK: Many cells

  func getStreams(_ request: borrowing Request, _ target: Target) throws(Problem) -> Answer {
    try target.allowOnly("since")
    if try form(of: request) == .json { return .response(json(streams.describeStreams())) }
    try checkOpen()
    if request.method == .head { return .response(Response(status: .ok, fields: Self.streamFields)) }
    return try openCells([:], request, target)
  }

  func postStreams(_ request: borrowing Request, _ target: Target) throws(Problem) -> Answer {
    try target.allowOnly("since")
    // There is one form, and whoever uses `curl --json` asks for another: the header may be disregarded (RFC 9110
    // §12.5.1).
    let body = try Body.object(of: request)
    try checkOpen()
    return try openCells(try Self.cells(of: body), request, target)
  }

  private func openCells(
    _ cells: [String: Value], _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> Answer {
    let cursor = cursor(of: request, target)
    let stream = try store.withPublication { publication throws(Problem) in
      try streams.openCells(cells, cursor: cursor, &publication)
    }
    return .stream(stream, fields: Self.streamFields)
  }

  /// The bindings of a body `{"cells":{…}}`.
  private static func cells(of body: JSONObject) throws(Problem) -> [String: Value] {
    guard case .object(let cells)? = body["cells"], body.members.count == 1 else {
      throw Problem(.invalidValue, "the body is {\"cells\":{\"name\":{…}}}")
    }
    return Dictionary(uniqueKeysWithValues: cells.members.map { ($0.key, $0.value) })
  }

  func getStream(_ name: String, _ target: Target) throws(Problem) -> Answer {
    try target.allowOnly()
    return .response(json(try streams.describeStream(name)))
  }

  func deleteStream(_ name: String, _ target: Target) throws(Problem) -> Answer {
    try target.allowOnly()
    try streams.endStream(name)
    return .response(Response(status: .noContent))
  }

  func getCells(_ stream: String, _ cell: String?, _ target: Target) throws(Problem) -> Answer {
    try target.allowOnly()
    return .response(json(try streams.describeCells(stream, cell: cell)))
  }

  func deleteCells(_ stream: String, _ cell: String?, _ target: Target) throws(Problem) -> Answer {
    try target.allowOnly()
    try store.withPublication { publication throws(Problem) in
      try streams.endCells(stream, cell: cell, &publication)
    }
    return .response(Response(status: .noContent))
  }

  func putCells(_ stream: String, _ request: borrowing Request, _ target: Target) throws(Problem) -> Answer {
    try target.allowOnly()
    let bindings = try Self.cells(of: try Body.object(of: request))
    let cells = try store.withPublication { publication throws(Problem) in
      try streams.bind(bindings, in: stream, replacingAll: true, &publication)
    }
    var body = JSONObject()
    for (name, cell) in cells.sorted(by: { $0.key < $1.key }) { body[name] = .object(cell) }
    return .response(json(["cells": .object(body)]))
  }

  func putCell(
    _ stream: String, _ cell: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> Answer {
    try target.allowOnly()
    let binding = try Body.value(of: request)
    let cells = try store.withPublication { publication throws(Problem) in
      try streams.bind([cell: binding], in: stream, &publication)
    }
    return .response(json(cells[cell] ?? [:]))
  }

  func patchCell(
    _ stream: String, _ cell: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> Answer {
    try target.allowOnly()
    let changes = try Body.value(of: request, types: [Body.json, Body.mergePatch])
    return .response(
      json(
        try store.withPublication { publication throws(Problem) in
          try streams.patch(cell, in: stream, changes, &publication)
        }))
  }
}
