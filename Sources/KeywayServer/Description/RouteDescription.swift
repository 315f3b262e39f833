package import HTTPTypes

/// What a resource is for, and what its methods take and give.
package struct RouteDescription: Sendable {
  /// The chapter of the description that it stands in.
  package enum Chapter: String, CaseIterable, Sendable {
    case objects, streams, schema, access, operations, nodes, files
  }

  /// Where it stands.
  let chapter: Chapter
  /// Its methods, but for `HEAD`, which is as `GET`, and `OPTIONS`, which is the same everywhere.
  let operations: [HTTPRequest.Method: OperationDescription]

  package init(_ chapter: Chapter, _ operations: [HTTPRequest.Method: OperationDescription]) {
    self.chapter = chapter
    self.operations = operations
  }

  /// A resource that can only be read.
  package static func reading(
    _ chapter: Chapter, _ name: String, _ summary: String, _ answers: AnswerDescription...,
    headers: [ParameterDescription] = [], problems: Set<ProblemCode> = []
  ) -> RouteDescription {
    RouteDescription(
      chapter,
      [
        .get: OperationDescription(
          name: name, summary: summary, headers: headers, answers: answers, problems: problems)
      ])
  }
}

// MARK: - Objects, key paths, fetches, transactions

extension RouteDescription {
  private static let conditional: [ParameterDescription] = [.ifMatch, .ifNoneMatch]
  private static let onWrites: [ParameterDescription] = [.ifMatch, .ifNoneMatch, .writer]
  private static let notRead = AnswerDescription.nothing(
    "It is done. There is no content where there is no memory for it.", headers: [.tag])

  /// A write that gives back what it wrote.
  private static func written(_ schema: SchemaForm, _ meaning: String) -> [AnswerDescription] {
    [.json(schema, meaning, headers: [.tag]), notRead]
  }

  private static let created = AnswerDescription.json(
    .named("object"), "It is created.", status: .created, headers: [.tag, .location])

  static let allObjects = RouteDescription(
    .objects,
    [
      .get: OperationDescription(
        name: "fetchAllObjects", summary: "Fetch the objects of all entities, or of some",
        parameters: [.limit, .page, .entities],
        answers: [.json(.named("fetch"), "A page of objects.", headers: [.link])],
        problems: .reading.and([.unknownEntity, .malformedQuery, .pageExpired]))
    ])

  static let entityObjects = RouteDescription(
    .objects,
    [
      .get: OperationDescription(
        name: "fetchObjects", summary: "Fetch the objects of an entity, or watch them as a live query",
        parameters: [
          ParameterDescription.filter, .sort, .section, .limit, .page, .keysAndPaths, .aggregate, .expand, .context,
        ] + ParameterDescription.ofStreams,
        streamParameters: [
          ParameterDescription.filter, .sort, .section, .limit, .keysAndPaths, .aggregate, .context,
        ] + ParameterDescription.ofStreams,
        headers: [.lastEventID],
        answers: [.json(.named("fetch"), "A page of objects.", headers: [.link])],
        problems: .reading.and(.query).and(.opening).and(.liveQuery).and([.unknownEntity, .pageExpired]),
        events: EventDescription.ofQueries),
      .post: OperationDescription(
        name: "createObject", summary: "Create an object, which gets its id from the server",
        headers: [.ifMatch, .writer, .lifetime, .idempotencyKey], body: .json(.named("creation")),
        answers: [created, notRead],
        problems: .body.and(.writing).and(.values).and(.idempotency)),
    ])

  static let object = RouteDescription(
    .objects,
    [
      .get: OperationDescription(
        name: "getObject", summary: "Read an object, or observe its display keys",
        parameters: [.keys, .expand],
        streamParameters: [ParameterDescription.options, .context] + ParameterDescription.ofStreams,
        headers: conditional + [.lastEventID],
        answers: [.json(.named("object"), "The object.", headers: [.tag]), .unchanged],
        problems: .reading.and(.object).and(.keyPath).and(.opening).and([.staleRevision]),
        events: EventDescription.ofObjects),
      .put: OperationDescription(
        name: "putObject", summary: "Create or replace an object", headers: onWrites + [.lifetime],
        body: .json(.named("creation")), answers: written(.named("object"), "It is replaced.") + [created],
        problems: .body.and(.writing).and(.values).and([.deleteDenied])),
      .patch: OperationDescription(
        name: "patchObject", summary: "Change some keys of an object", headers: onWrites + [.lifetime],
        body: BodyDescription(
          types: [
            (Body.json, .named("mergePatch")), (Body.mergePatch, .named("mergePatch")),
            (Body.jsonPatch, .named("jsonPatch")),
          ]),
        answers: written(.named("object"), "It is changed."),
        problems: .body.and(.writing).and(.values).and([.patchTestFailed, .deleteDenied])),
      .delete: OperationDescription(
        name: "deleteObject", summary: "Delete an object by the delete rules", headers: onWrites,
        answers: [.nothing("It is deleted.")],
        problems: .writing.and(.object).and([.deleteDenied])),
    ])

  static let keyPath = RouteDescription(
    .objects,
    [
      .get: OperationDescription(
        name: "getValue", summary: "Read the value for a key path, or observe it",
        streamParameters: [ParameterDescription.options, .context] + ParameterDescription.ofStreams,
        headers: conditional + [.lastEventID],
        answers: [
          .json(.any, "The value; for several key paths an object with a member for each.", headers: [.tag]),
          .unchanged,
        ],
        problems: .reading.and(.object).and(.keyPath).and(.opening).and([.staleRevision]),
        events: EventDescription.ofObjects),
      .put: OperationDescription(
        name: "setValue", summary: "Set the value for a key path, or replace members of a to-many",
        parameters: [.indexes], headers: onWrites, body: .json(.any), answers: written(.any, "The value as written."),
        problems: .body.and(.writing).and(.values)),
      .post: OperationDescription(
        name: "insertMembers", summary: "Insert members into a to-many, or change it as a set",
        parameters: [
          .indexes,
          ParameterDescription("operation", .word(["union", "minus", "intersect", "set"]), "The set operation."),
        ],
        headers: onWrites + [.idempotencyKey], body: .json(.any), answers: written(.any, "The to-many as written."),
        problems: .body.and(.writing).and(.values).and(.idempotency)),
      .delete: OperationDescription(
        name: "removeValue", summary: "Set a value to null, or remove members of a to-many",
        parameters: [.indexes, .members, .values], headers: onWrites,
        answers: [.json(.any, "The to-many as written.", headers: [.tag]), .nothing("It is null.", headers: [.tag])],
        problems: .writing.and(.values)),
    ])

  static let transactions = RouteDescription(
    .objects,
    [
      .post: OperationDescription(
        name: "commit", summary: "Commit many operations, all or none",
        headers: [.ifMatch, .writer, .idempotencyKey], body: .json(.named("transaction")),
        answers: [.json(.named("commit"), "It is committed."), notRead],
        problems: .body.and(.writing).and(.values).and(.idempotency).and([.deleteDenied, .unbalancedBracket]))
    ])

  static let journal = RouteDescription(
    .objects,
    [
      .get: OperationDescription(
        name: "readJournal", summary: "Read the committed transactions, or follow them",
        parameters: [.since, .transactions, .overflow],
        streamParameters: [ParameterDescription.transactions] + ParameterDescription.ofStreams,
        headers: [.lastEventID],
        answers: [.text(Negotiation.Form.lines.type, "Transactions, one a line.")],
        problems: .reading.and(.opening).and([.unusableCursor]), events: EventDescription.ofJournal)
    ])
}

// MARK: - Streams and their cells

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

// MARK: - The schema, sessions and revocations, what operators ask, and files

extension RouteDescription {
  static let schema = reading(
    .schema, "getSchema", "All entities, as JSON Schema",
    .json(.object(["$schema": .text, "$defs": .map(of: .map)]), "The entities."))
  static let entity = reading(
    .schema, "getEntity", "One entity, as JSON Schema", .json(.map, "The entity."), problems: [.unknownEntity])
  static let description = reading(
    .schema, "getDescription", "This description", .json(.map, "OpenAPI 3.1."))
  static let problem = reading(
    .schema, "getProblem", "What a problem means",
    .json(.object(["type": .text, "status": .whole(from: 400), "title": .text]), "Its meaning."),
    problems: [.notFound])

  static let health = reading(
    .operations, "isAlive", "Whether the process answers", .json(.object(["status": .word(["alive"])]), "It does."))
  static let readiness = reading(
    .operations, "isReady", "Whether requests are taken, writes among them",
    .json(.object(["status": .word(["ready"])]), "They are."), problems: [.draining, .storeUnavailable])
  static let metrics = reading(
    .operations, "getMetrics", "Numbers for Prometheus",
    .text("text/plain; version=0.0.4; charset=utf-8", "The metrics, in the Prometheus text format."))
  static let status = reading(
    .operations, "getStatus", "What is open, and how far the store has come", .json(.named("status"), "The status."))

  static let session = RouteDescription(
    .access,
    [
      .get: OperationDescription(
        name: "getSession", summary: "Who asks, and until when",
        answers: [.json(.object(["identity": .map.orNull, "expires": .text.orNull]), "The identity.")]),
      .post: OperationDescription(
        name: "beginSession", summary: "Begin a session that ends with the token",
        answers: [.nothing("The cookie is set.", headers: [.cookie])],
        problems: [.unauthenticated, .storeUnavailable, .overloaded, .leaderUnreachable, .behind]),
      .delete: OperationDescription(
        name: "endSession", summary: "End the session of the cookie",
        answers: [.nothing("It is ended.", headers: [.cookie])],
        problems: [.unauthenticated, .storeUnavailable, .overloaded, .leaderUnreachable, .behind]),
    ])

  private static let revocationForm = SchemaForm.object(["sub": .text, "before": .text])

  static let revocations = reading(
    .access, "listRevocations", "Whose tokens are refused",
    .json(.object(["revocations": .list(of: revocationForm)]), "The revocations."), problems: .reading)
  static let revocation = RouteDescription(
    .access,
    [
      .get: OperationDescription(
        name: "getRevocation", summary: "Since when tokens of a sub are refused",
        answers: [.json(revocationForm, "The revocation.")], problems: [.notFound, .invalidValue]),
      .put: OperationDescription(
        name: "putRevocation", summary: "Refuse the tokens of a sub that are older",
        body: .json(.object(["before": .text], optional: ["before"]), isRequired: false),
        answers: [
          .json(revocationForm, "It is changed."), .json(revocationForm, "It is new.", status: .created),
        ],
        problems: .body.and([.storeUnavailable, .overloaded])),
      .delete: OperationDescription(
        name: "endRevocation", summary: "Lift a revocation", answers: [.nothing("It is lifted.")],
        problems: [.notFound, .invalidValue, .storeUnavailable, .overloaded]),
    ])

  private static let fileProblems: Set<ProblemCode> = [.notFound, .staleRevision, .overloaded]
  private static let fileHeaders: [ParameterDescription] = [.ifMatch, .ifNoneMatch]
  private static let moved = AnswerDescription(
    status: .permanentRedirect, meaning: "It is a folder.", headers: [.location])

  static let front = reading(
    .files, "getFrontPage", "The application's page, or the console",
    .text("text/html", "The page.", headers: [.tag]), .unchanged, headers: fileHeaders, problems: fileProblems)
  static let icon = reading(
    .files, "getIcon", "The application's icon", .text("*/*", "The icon.", headers: [.tag]),
    .nothing("There is none."), .unchanged, headers: fileHeaders, problems: fileProblems)
  static let library = reading(
    .files, "getLibrary", "The client library for browsers", .text("text/javascript", "The module.", headers: [.tag]),
    .unchanged, headers: fileHeaders, problems: fileProblems)
  static let libraryTypes = reading(
    .files, "getLibraryTypes", "The types of the client library", .text("text/plain", "TypeScript.", headers: [.tag]),
    .unchanged, headers: fileHeaders, problems: fileProblems)
  static let consoleFolder = reading(
    .files, "getConsoleFolder", "The way to the console", moved, problems: fileProblems)
  static let console = reading(
    .files, "getConsoleFile", "The console, and what it is made of",
    .text("*/*", "The file.", headers: [.tag]), .unchanged, headers: fileHeaders, problems: fileProblems)
  static let published = reading(
    .files, "getFile", "A file of the application, at any depth",
    .text("*/*", "The file.", headers: [.tag]),
    AnswerDescription(
      status: .partialContent, meaning: "The part of it.", types: [("*/*", .text)], headers: [.tag, .contentRange]),
    .unchanged, moved, headers: fileHeaders + [ParameterDescription.range, .ifRange],
    problems: fileProblems.and([.rangeNotSatisfiable]))
}
