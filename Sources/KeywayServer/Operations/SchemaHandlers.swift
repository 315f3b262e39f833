import HTTPServer
import KeyValueModel

/// `/v1/entities`: the schema as JSON Schema.
struct SchemaHandlers: Sendable {
  let schema: Schema
  /// The document of all entities, made once: that of a large schema takes long.
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
