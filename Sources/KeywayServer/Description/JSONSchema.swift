import HTTPServer
import KeyValueModel

/// The schema as JSON Schema (draft 2020-12), for clients that validate or generate.
///
/// Properties that JSON Schema cannot express have names that begin with `keyway:`: `keyway:toOne`, `keyway:toMany`,
/// `keyway:ordered`, `keyway:inverse`, `keyway:delete`, `keyway:computed`, `keyway:indexed`, `keyway:notifies`,
/// `keyway:extends` and `keyway:display`.
enum JSONSchema {
  private static let dialect = Value.string("https://json-schema.org/draft/2020-12/schema")

  /// Returns the schema of all entities, under `$defs`.
  static func document(of schema: Schema) -> JSONObject {
    var entities = JSONObject()
    for entity in schema.entities { entities[entity.name] = .object(document(of: entity)) }
    return ["$schema": dialect, "$defs": .object(entities)]
  }

  /// Returns the schema of one entity.
  static func document(of entity: Entity) -> JSONObject {
    var properties: JSONObject = [
      "@ref": .object(["type": .string("string"), "readOnly": .bool(true)]),
      "@revision": .object(["type": .string("integer"), "readOnly": .bool(true)]),
      "@lifetime": .object([
        "type": .array([.string("integer"), .string("string")]), "readOnly": .bool(true),
      ]),
    ]
    var required: [Value] = []
    for key in entity.keys {
      properties[key.name] = .object(property(key))
      if !key.isOptional, key.defaultValue.isNull { required.append(.string(key.name)) }
    }
    return [
      "$schema": dialect,
      "$id": .string("/v1/entities/\(entity.name)"),
      "title": .string(entity.name),
      "type": .string("object"),
      "keyway:extends": entity.parent.map(Value.string) ?? .null,
      "keyway:display": .array(entity.display.map { .string($0.text) }),
      "properties": .object(properties),
      "required": .array(required),
      "additionalProperties": .bool(false),
    ]
  }

  private static func property(_ key: Key) -> JSONObject {
    var property: JSONObject
    switch key.kind {
    case .attribute(let attribute): property = self.property(attribute, isOptional: key.isOptional)
    case .toOne(let toOne):
      property = ["type": type("string", isOptional: key.isOptional), "keyway:toOne": .string(toOne.destination)]
      property["keyway:inverse"] = toOne.inverse.map(Value.string)
      property["keyway:delete"] = .string(toOne.deleteRule.rawValue)
    case .toMany(let toMany): property = self.property(toMany)
    case .computed(let computed):
      property = ["readOnly": .bool(true), "keyway:computed": .string(computed.text)]
      if let type = computed.declaredType, type != .json { property["type"] = self.type(word(type), isOptional: true) }
    }
    if key.isIndexed { property["keyway:indexed"] = .bool(true) }
    if key.notifying != .always { property["keyway:notifies"] = .string(key.notifying.rawValue) }
    return property
  }

  private static func property(_ attribute: Attribute, isOptional: Bool) -> JSONObject {
    var property = JSONObject()
    if attribute.type != .json { property["type"] = type(word(attribute.type), isOptional: isOptional) }
    if attribute.type == .date {
      property["anyOf"] = .array(["date", "date-time"].map { .object(["format": .string($0)]) })
      property["keyway:type"] = .string("date")
    }
    property["default"] = attribute.defaultValue
    property["minimum"] = attribute.minimum
    property["maximum"] = attribute.maximum
    property["minLength"] = attribute.minLength.map { .integer(Int64($0)) }
    property["maxLength"] = attribute.maxLength.map { .integer(Int64($0)) }
    property["pattern"] = attribute.pattern.map { .string($0.text) }
    property["enum"] = attribute.allowedValues.map { .array($0 + (isOptional ? [.null] : [])) }
    return property
  }

  private static func property(_ toMany: ToMany) -> JSONObject {
    var property: JSONObject = [
      "type": .string("array"), "uniqueItems": .bool(true), "default": .array([]),
      "keyway:ordered": .bool(toMany.isOrdered),
    ]
    switch toMany.member {
    case .object(let entity):
      property["items"] = .object(["type": .string("string")])
      property["keyway:toMany"] = .string(entity)
      property["keyway:inverse"] = toMany.inverse.map(Value.string)
      property["keyway:delete"] = .string(toMany.deleteRule.rawValue)
    case .value(let attribute):
      property["items"] = .object(self.property(attribute, isOptional: false))
    }
    return property
  }

  private static func word(_ type: AttributeType) -> String {
    type == .date ? "string" : type.rawValue
  }

  private static func type(_ word: String, isOptional: Bool) -> Value {
    isOptional ? .array([.string(word), .string("null")]) : .string(word)
  }
}

/// `/v1/entities`: the schema as JSON Schema.
struct SchemaHandlers: Sendable {
  let schema: Schema
  /// The document of all entities, made once, because that of a large schema takes long.
  private let document: [UInt8]

  init(schema: Schema) {
    self.schema = schema
    var bytes: [UInt8] = []
    JSONSchema.document(of: schema).appendJSON(to: &bytes)
    document = bytes
  }

  /// All entities.
  func entities(_ request: borrowing Request, _ context: RequestContext) -> HandlerResponse {
    .response(.json(document))
  }

  /// One entity.
  func entity(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let entity = try Problem.translating(try schema.requireEntity(context[.entity]))
    return .response(.json(JSONSchema.document(of: entity)))
  }
}
