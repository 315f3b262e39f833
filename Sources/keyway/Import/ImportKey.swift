import KeyValueModel
import KeywayClient

/// What an import has to know of a key, from its JSON Schema.
struct ImportKey: Hashable, Sendable {
  /// What a line may give for it.
  enum Kind: Hashable, Sendable {
    /// A value; a to-many of values is one too.
    case value
    /// Any JSON value, which a merge patch would merge.
    case document
    case toOne
    case toMany
    /// Nothing: it is worked out.
    case computed
  }

  let kind: Kind
  /// How a text is read for it; nil for a computed one.
  let type: ColumnType?
  let isRequired: Bool
  /// The key on the other side that the server keeps consistent.
  let inverse: String?
  /// What a missing one becomes.
  let defaultValue: Value

  /// What the JSON Schema of a property says. A to-many is an array, with the destination beside or inside its items.
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
