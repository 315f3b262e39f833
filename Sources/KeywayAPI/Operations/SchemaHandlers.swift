import HTTPServer
import KeyValueModel

/// `/v1/entities`: the schema as JSON Schema.
struct SchemaHandlers: Sendable {
  let schema: Schema

  /// All entities.
  func entities(_ request: borrowing Request, _ context: RequestContext) -> HandlerResponse {
    .response(.json(JSONSchema.document(of: schema)))
  }

  /// One entity.
  func entity(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let entity = try Problem.translating(try schema.requireEntity(context[.entity]))
    return .response(.json(JSONSchema.document(of: entity)))
  }
}
