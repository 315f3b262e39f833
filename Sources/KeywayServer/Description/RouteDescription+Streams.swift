import HTTPTypes

/// Streams and their cells.
extension RouteDescription {
  private static let cellBody = BodyDescription.json(.named("cells"))

  static let streams = RouteDescription(
    .streams,
    [
      .get: OperationDescription(
        name: "listStreams", summary: "List the streams, or open one without cells",
        parameters: ParameterDescription.ofStreams, streamParameters: ParameterDescription.ofStreams,
        headers: [.lastEventID],
        answers: [.json(.object(["streams": .list(of: .named("stream"))]), "The streams.")],
        problems: .reading.and(.opening), events: EventDescription.ofCells),
      .post: OperationDescription(
        name: "openStream", summary: "Open a stream with cells", parameters: ParameterDescription.ofStreams,
        headers: [.lastEventID], body: cellBody, answers: [.stream],
        problems: .body.and(.cells).and(.reading), events: EventDescription.ofCells),
    ])

  static let stream = RouteDescription(
    .streams,
    [
      .get: OperationDescription(
        name: "getStream", summary: "Inspect a stream, or resume one that was cut",
        streamParameters: ParameterDescription.ofStreams, headers: [.lastEventID],
        answers: [.json(.named("stream"), "The stream.")],
        problems: .reading.and(.opening).and([.unknownStream, .tooManyQueries]), events: EventDescription.ofCells),
      .delete: OperationDescription(
        name: "endStream", summary: "End a stream", answers: [.nothing("It is ended.")], problems: [.unknownStream]),
    ])

  static let cells = RouteDescription(
    .streams,
    [
      .get: OperationDescription(
        name: "getCells", summary: "Read all cells of a stream", answers: [.json(.named("shownCells"), "The cells.")],
        problems: .reading.and([.unknownStream])),
      .put: OperationDescription(
        name: "bindCells", summary: "Set all cells of a stream at once", body: cellBody,
        answers: [.json(.named("shownCells"), "All cells.")],
        problems: .body.and(.cells).and([.unknownStream])),
      .patch: OperationDescription(
        name: "patchCells", summary: "Change some cells of a stream at once",
        body: .mergePatch(.object(["cells": .map(of: SchemaForm.named("binding").orNull)])),
        answers: [.json(.named("shownCells"), "All cells.")],
        problems: .body.and(.cells).and([.unknownStream])),
      .delete: OperationDescription(
        name: "endCells", summary: "End all cells of a stream", answers: [.nothing("They are ended.")],
        problems: [.unknownStream]),
    ])

  static let cell = RouteDescription(
    .streams,
    [
      .get: OperationDescription(
        name: "getCell", summary: "Read a cell", answers: [.json(.named("shownCell"), "The cell.")],
        problems: .reading.and([.unknownStream, .unknownCell])),
      .put: OperationDescription(
        name: "bindCell", summary: "Bind a cell to an object or a live query", body: .json(.named("binding")),
        answers: [.json(.named("shownCell"), "The cell.")], problems: .body.and(.cells).and([.unknownStream])),
      .patch: OperationDescription(
        name: "patchCell", summary: "Change what a cell is bound to, or whether it is visible",
        body: .mergePatch(.named("binding")), answers: [.json(.named("shownCell"), "The cell.")],
        problems: .body.and(.cells).and([.unknownStream])),
      .delete: OperationDescription(
        name: "endCell", summary: "End a cell", answers: [.nothing("It is ended.")],
        problems: [.unknownStream, .unknownCell]),
    ])
}
