import KeyValueModel

/// The events of streams, with what their data is (the specification, sections 4 and 5).
enum EventDescription: String, CaseIterable, Sendable {
  case open, change, results, content, gone, transaction, reset, heartbeat, bye

  /// The events of a stream of an object or of key paths.
  static let ofObjects: [EventDescription] = [.change, .gone, .reset, .heartbeat, .bye]
  /// The events of a live query.
  static let ofQueries: [EventDescription] = [.results, .content, .reset, .heartbeat, .bye]
  /// The events of a stream with cells.
  static let ofCells: [EventDescription] = [.open, .change, .results, .content, .gone, .reset, .heartbeat, .bye]
  /// The events of the journal.
  static let ofJournal: [EventDescription] = [.transaction, .reset, .heartbeat, .bye]

  /// The name of its schema.
  var schemaName: String { "event.\(rawValue)" }

  /// The whole event, as OpenAPI describes those of a stream: its fields by name, the data as the text of JSON.
  var schema: SchemaForm {
    .object(
      [
        "event": .word([rawValue]), "id": .text(matching: ParameterDescription.cursorPattern), "retry": .count,
        "data": SchemaForm([
          "type": .string("string"), "contentMediaType": .string(Body.json), "contentSchema": .object(data.json),
        ]),
      ], optional: ["id", "retry"])
  }

  /// What a stream of such events is described by.
  static func stream(of events: [EventDescription]) -> SchemaForm { .anyOf(events.map { .named($0.schemaName) }) }

  /// The data, as JSON.
  private var data: SchemaForm {
    switch self {
    case .open:
      .object(["stream": .text, "revision": .count, "heartbeat": .count, "url": .text])
    case .change:
      .object(
        [
          "revision": .count, "writer": .text, "initial": .bool, "changes": .list(of: .named("change")),
        ], optional: ["writer", "initial"])
    case .results: .object(Self.resultMembers, optional: Self.optionalResultMembers)
    case .content:
      .object(
        [
          "revision": .count, "writer": .text, "cell": .text, "count": .count, "total": .count, "failed": .count,
          "sections": .list(of: .named("section")), "aggregates": .map,
          "sectionChanges": .list(of: .map), "changes": .list(of: .named("rowChange")), "context": .text,
          "coalesced": .count,
        ], optional: ["writer", "cell", "failed", "sections", "aggregates", "sectionChanges", "context", "coalesced"])
    case .gone:
      .object(
        ["revision": .count, "writer": .text, "cell": .text, "object": .named("reference"), "context": .text],
        optional: ["writer", "cell", "context"])
    case .transaction: .named("committed")
    case .reset: .object(["reason": .word(["compacted", "epoch", "overflow"]), "revision": .count])
    case .heartbeat: .object(["revision": .count])
    case .bye: .object(["reason": .word(["shutdown", "expired", "lifetime", "overflow"])])
    }
  }

  private static let resultMembers: KeyValuePairs<String, SchemaForm> = [
    "revision": .count, "writer": .text, "initial": .bool, "cell": .text, "context": .text, "coalesced": .count,
    "count": .count, "total": .count, "failed": .count, "objects": .list(of: .named("part")),
    "sections": .list(of: .named("section")), "aggregates": .map,
  ]
  private static let optionalResultMembers: Set<String> = [
    "writer", "initial", "cell", "context", "coalesced", "failed", "sections", "aggregates",
  ]
}
