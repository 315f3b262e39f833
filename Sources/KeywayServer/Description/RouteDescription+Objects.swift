import HTTPTypes

/// Objects, key paths, fetches, transactions.
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
