import HTTPTypes

/// The schema, who may ask, what operators ask, and files.
extension RouteDescription {
  /// A resource that can only be read.
  static func reading(
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
