/// The body of a request.
struct BodyDescription: Sendable {
  /// Its media types, each with what is in it.
  let types: [(name: String, schema: SchemaForm)]
  /// Whether it must be there.
  var isRequired = true

  /// A body of JSON.
  static func json(_ schema: SchemaForm, isRequired: Bool = true) -> BodyDescription {
    BodyDescription(types: [(Body.json, schema)], isRequired: isRequired)
  }

  /// A merge patch of something: a JSON object of what changes.
  static func mergePatch(_ schema: SchemaForm) -> BodyDescription {
    BodyDescription(types: [(Body.json, schema), (Body.mergePatch, schema)])
  }
}
