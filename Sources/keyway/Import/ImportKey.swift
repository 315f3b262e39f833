internal import KeyValueModel

/// What an import has to know of a key, from its JSON Schema.
struct ImportKey: Hashable, Sendable {
  /// What a line may give for it.
  enum Kind: Hashable, Sendable {
    /// A value; a to-many of values is one too.
    case value
    /// Any JSON value, which a merge patch would merge.
    case document
    /// A reference or null.
    case toOne
    /// An array of references.
    case toMany
    /// Nothing: it is worked out.
    case computed
  }

  /// What a line may give.
  let kind: Kind
  /// Whether there is no object without it.
  let isRequired: Bool
  /// The key on the other side that the server keeps consistent.
  let inverse: String?
  /// What a missing one becomes.
  let defaultValue: Value

  /// What the JSON Schema of a property says. A to-many is an array, with the destination beside or inside its items.
  init(schema: JSONObject) {
    var items = JSONObject()
    if schema["type"] == .string("array"), case .object(let object)? = schema["items"] { items = object }
    if schema["readOnly"] == .bool(true) {
      kind = .computed
    } else if schema["keyway:toMany"] != nil || items["keyway:toOne"] != nil {
      kind = .toMany
    } else if schema["keyway:toOne"] != nil {
      kind = .toOne
    } else {
      kind = schema["type"] == nil ? .document : .value
    }
    var isRequired = schema["type"] != nil
    if case .array(let types)? = schema["type"], types.contains(.string("null")) { isRequired = false }
    self.isRequired = isRequired
    if case .string(let name)? = schema["keyway:inverse"] ?? items["keyway:inverse"] {
      inverse = name
    } else {
      inverse = nil
    }
    defaultValue = schema["default"] ?? (kind == .toMany ? .array([]) : .null)
  }
}
