import KeyValueModel
import KeywayClient
import OrderedCollections

/// The part of the server's schema that imports and exports need.
struct ImportSchema: Sendable {
  /// The keys of each entity by name, both in the order of the schema.
  let entities: OrderedDictionary<String, OrderedDictionary<String, ImportKey>>

  /// Parses the response to `GET /v1/entities`. Nil if it is something else.
  init?(document: Value?) {
    guard let definitions = document?.asObject?["$defs"]?.asObject else { return nil }
    var entities: OrderedDictionary<String, OrderedDictionary<String, ImportKey>> = [:]
    for (name, definition) in definitions.members {
      guard let properties = definition.asObject?["properties"]?.asObject else { return nil }
      entities[name] = Self.keys(in: properties)
    }
    self.entities = entities
  }

  /// Returns the keys that the properties of an entity's JSON Schema describe.
  static func keys(in properties: JSONObject) -> OrderedDictionary<String, ImportKey> {
    var keys: OrderedDictionary<String, ImportKey> = [:]
    for case (let key, .object(let property)) in properties.members where !key.hasPrefix("@") {
      keys[key] = ImportKey(schema: property)
    }
    return keys
  }

  /// Fetches the schema of a server.
  static func fetch(_ client: Client) async throws -> ImportSchema {
    let response = try await client.send("GET", "/v1/entities", headers: ["Accept": "application/json"])
    let document = try? Value(json: response.body, depthLimit: ImportLimits.jsonDepth)
    guard let schema = ImportSchema(document: document) else {
      throw CommandFailure("the server's schema cannot be read")
    }
    return schema
  }

  /// Returns the keys that a line leaves out, with their defaults, as a replacement sets them. A relationship with an
  /// inverse is left to its other side.
  func missing(from row: ObjectLine) -> (values: JSONObject, documents: JSONObject) {
    var values = JSONObject()
    var documents = JSONObject()
    let linked = Set(row.links.map(\.key))
    for (name, key) in entities[row.reference.entity] ?? [:] where !linked.contains(name) && key.inverse == nil {
      switch key.kind {
      case .computed: break
      case .document where row.documents[name] == nil: documents[name] = key.defaultValue
      case .value where row.values[name] == nil: values[name] = key.defaultValue
      case .toOne where row.values[name] == nil: values[name] = key.defaultValue
      case .toMany where row.values[name] == nil: values[name] = key.defaultValue
      case .document, .value, .toOne, .toMany: break
      }
    }
    return (values, documents)
  }
}

/// The part of a key's JSON Schema that an import needs.
struct ImportKey: Hashable, Sendable {
  /// The kind of value that a line may have for it.
  enum Kind: Hashable, Sendable {
    /// A value, or a to-many of values.
    case value
    /// Any JSON value, which a merge patch would merge.
    case document
    case toOne
    case toMany
    /// No value, since the key is computed.
    case computed
  }

  let kind: Kind
  /// The type by which a text is read for it, or nil for a computed key.
  let type: ColumnType?
  let isRequired: Bool
  /// The key on the other side that the server keeps consistent.
  let inverse: String?
  /// The value if a line leaves the key out.
  let defaultValue: Value

  /// Creates a key from the JSON Schema of a property. A to-many is an array, with the destination beside or inside its
  /// items.
  init(schema: JSONObject) {
    let items = (schema["type"] == .string("array") ? schema["items"]?.asObject : nil) ?? JSONObject()
    if schema["readOnly"] == .bool(true) {
      kind = .computed
    } else if schema["keyway:toMany"] != nil || items["keyway:toOne"] != nil {
      kind = .toMany
    } else if schema["keyway:toOne"] != nil {
      kind = .toOne
    } else {
      kind = schema["type"] == nil ? .document : .value
    }
    type = ColumnType(schema: schema)
    isRequired = schema["type"].map { $0.asArray?.contains(.string("null")) != true } ?? false
    inverse = (schema["keyway:inverse"] ?? items["keyway:inverse"])?.asString
    defaultValue = schema["default"] ?? (kind == .toMany ? .array([]) : .null)
  }
}
