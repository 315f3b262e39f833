import KeyValueModel

/// The schemas that the description names: the entities, as `/v1/entities` has them, and the forms of requests, answers
/// and events.
struct ComponentSchemas {
  let schema: Schema

  /// What the schema of an entity is called: no other schema's name has this in front.
  static func name(of entity: Entity) -> String { "entity.\(entity.name)" }

  private static let referencePattern = "^[A-Za-z_][A-Za-z0-9_]*/[A-Za-z0-9._~-]{1,128}$"
  /// What an id is like.
  static let idPattern = "^[A-Za-z0-9._~-]{1,128}$"

  /// All of them by name.
  func all() -> JSONObject {
    var all = JSONObject()
    for entity in schema.entities {
      var form = JSONSchema.document(of: entity)
      // The description says what dialect it is in, and where the schema stands.
      form["$schema"] = nil
      form["$id"] = nil
      all[Self.name(of: entity)] = .object(form)
    }
    for (name, form) in forms { all[name] = .object(form.json) }
    for event in EventDescription.allCases { all[event.schemaName] = .object(event.schema.json) }
    return all
  }

  private var forms: [(String, SchemaForm)] { objects + Self.writing + Self.answers + Self.streaming }

  private var objects: [(String, SchemaForm)] {
    let entities = schema.entities.map { SchemaForm.named(Self.name(of: $0)) }
    return [
      ("reference", .text(matching: Self.referencePattern).described("The name of an object.")),
      (
        "part",
        SchemaForm([
          "type": .string("object"),
          "description": .string("Some keys of an object, key paths of a row, or objects in the place of references."),
          "properties": .object([
            "@ref": .object(SchemaForm.named("reference").json), "@revision": .object(SchemaForm.count.json),
          ]),
          "required": .array([.string("@ref"), .string("@revision")]),
        ])
      ),
      ("object", .anyOf(entities + [.named("part")])),
      ("creation", entities.isEmpty ? .map : .anyOf(entities)),
      ("mergePatch", SchemaForm.map.described("The keys that change; null takes a value away (RFC 7396).")),
    ]
  }

  private static let writing: [(String, SchemaForm)] = [
    (
      "jsonPatch",
      .list(
        of: .object(
          [
            "op": .word(["add", "remove", "replace", "move", "copy", "test"]), "path": .text, "from": .text,
            "value": .any,
          ], optional: ["from", "value"])
      ).described("RFC 6902.")
    ),
    ("transaction", .object(["operations": .list(of: .anyOf(operations))])),
    (
      "commit",
      .object(["revision": .count, "results": .list(of: .object(["object": .named("reference")]))])
    ),
    (
      "committed",
      .object(
        ["revision": .count, "time": .text, "writer": .text, "by": .text, "operations": .list(of: .map)],
        optional: ["writer", "by"])
    ),
  ]

  /// The operations of a transaction, each with the members that its kind has.
  private static var operations: [SchemaForm] {
    OperationKind.allCases.filter(\.isSent).map { kind in
      var members: JSONObject = [
        "op": .object(SchemaForm.word([kind.name]).json), "object": .object(SchemaForm.named("reference").json),
      ]
      var required = ["op"]
      if kind == .create { members["entity"] = .object(SchemaForm.text.json) } else { required.append("object") }
      for operand in kind.operands {
        members[operand.name] = .object(operand.schema.json)
        if !operand.isOptional { required.append(operand.name) }
      }
      if OperationReader.leasing.contains(kind) {
        members["lifetime"] = .object(SchemaForm.anyOf([.whole(from: 1), .text]).json)
      }
      return SchemaForm([
        "type": .string("object"), "properties": .object(members), "required": .array(required.map(Value.string)),
        "additionalProperties": .bool(false),
      ])
    }
  }

  private static let answers: [(String, SchemaForm)] = [
    (
      "fetch",
      .object(
        [
          "revision": .count, "count": .count, "total": .count, "failed": .count,
          "objects": .list(of: .named("object")),
          "sections": .list(of: .named("section")), "aggregates": .map, "next": .text,
        ], optional: ["failed", "sections", "aggregates", "next"])
    ),
    ("section", .object(["name": .any, "count": .count, "aggregates": .map], optional: ["aggregates"])),
    (
      "problem",
      .object(
        [
          "type": .text, "title": .text, "status": .whole(from: 400), "detail": .text, "object": .text,
          "keyPath": .text, "operation": .count, "requestId": .text,
        ], optional: ["object", "keyPath", "operation", "requestId"]
      ).described("RFC 9457.")
    ),
    (
      "status",
      .object(
        [
          "version": .text, "epoch": .text, "revision": .count, "oldest": .text, "objects": .count, "streams": .count,
          "cells": .count, "queries": .count, "observations": .count, "pendingBytes": .count, "lagging": .count,
          "memory": .map(of: .count), "draining": .bool, "store": .map, "role": .text, "node": .text, "behind": .count,
          "behindSeconds": .number, "follows": .text, "silence": .text, "pen": .text, "cached": .count,
          "followers": .list(of: .object(["node": .text, "behind": .count])),
        ], optional: ["follows", "silence", "pen", "cached", "followers"])
    ),
  ]

  private static let binding: KeyValuePairs<String, SchemaForm> = [
    "object": SchemaForm.named("reference").orNull, "keyPaths": SchemaForm.list(of: .text).orNull,
    "options": SchemaForm.list(of: .word(["new", "old", "initial", "prior", "none"])).orNull,
    "entity": SchemaForm.text.orNull, "filter": SchemaForm.text.orNull, "sort": SchemaForm.text.orNull,
    "section": SchemaForm.text.orNull, "limit": SchemaForm.count.orNull,
    "aggregate": .anyOf([SchemaForm.text.orNull, .list(of: .text)]), "keys": SchemaForm.list(of: .text).orNull,
    "visible": .bool, "context": SchemaForm.text.orNull,
  ]

  private static let streaming: [(String, SchemaForm)] = [
    ("binding", .object(binding, optional: Set(binding.map(\.key)))),
    ("cells", .object(["cells": .map(of: .named("binding"))])),
    ("shownCells", .object(["cells": .map(of: .named("shownCell"))])),
    ("shownCell", shownCell),
    (
      "stream",
      SchemaForm([
        "type": .string("object"),
        "properties": .object([
          "stream": .object(SchemaForm.text.json),
          "kind": .object(SchemaForm.word(["object", "query", "cells", "journal"]).json),
          "cells": .object(SchemaForm.map(of: .named("shownCell")).json),
        ]),
        "required": .array([.string("stream"), .string("kind")]),
      ])
    ),
    (
      "change",
      .object(
        [
          "cell": .text, "object": .named("reference"), "keyPath": .text,
          "kind": .word(["setting", "insertion", "removal", "replacement"]), "prior": .bool,
          "indexes": .list(of: .count), "old": .any, "new": .any, "context": .text, "coalesced": .count,
        ], optional: ["cell", "prior", "indexes", "old", "new", "context", "coalesced"])
    ),
    (
      "rowChange",
      .object(
        [
          "type": .word(["delete", "move", "insert", "update"]), "object": .named("reference"), "index": place,
          "newIndex": place, "reason": .word(["created", "entered", "deleted", "left"]), "keys": .list(of: .text),
          "value": .named("part"),
        ], optional: ["index", "newIndex", "reason", "keys", "value"])
    ),
  ]

  /// The place of a row: with sections, that of its section and the one in it.
  private static let place = SchemaForm.anyOf([.count, .list(of: .count)])

  private static var shownCell: SchemaForm {
    var members: JSONObject = ["cell": .object(SchemaForm.text.json)]
    for (name, form) in binding { members[name] = .object(form.json) }
    for name in ["pending", "told"] { members[name] = .object(SchemaForm.count.json) }
    let always = ["cell", "visible", "context", "pending", "told"]
    return SchemaForm([
      "type": .string("object"), "properties": .object(members), "required": .array(always.map(Value.string)),
      "additionalProperties": .bool(false),
    ])
  }
}

/// The events of streams, with what their data is (the specification, sections 4 and 5).
package enum EventDescription: String, CaseIterable, Sendable {
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
  fileprivate var schemaName: String { "event.\(rawValue)" }

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

extension OperandForm {
  /// What the member of an operation is like.
  fileprivate var schema: SchemaForm {
    switch self {
    case .keyPath, .key, .mutation: .text
    case .value, .values, .members, .lifetime, .patch: .any
    case .body: .map
    case .indexes, .optionalIndexes: .list(of: SchemaForm(["type": .string("integer")]))
    case .revision: .count
    }
  }

  /// Whether an operation may leave it out.
  fileprivate var isOptional: Bool { self == .optionalIndexes }
}
