import HTTPServer
import KeyValueModel
import Support

/// `/v1/openapi.json`: what the server takes and gives, for programs that make clients, pages or tests of it.
///
/// It describes its own row of the route table too, so it is written once the table is there. That is before the first
/// request; from then on it stays as it is.
final class DescriptionHandler: Sendable {
  private let document = Locked<[UInt8]>([])

  /// Writes the document.
  func describe(_ routes: [Route], schema: Schema, access: AccessControl) {
    var description = OpenAPIDocument(schema: schema, routes: routes, access: access)
    var bytes: [UInt8] = []
    description.json().appendJSON(to: &bytes)
    document.withLock { $0 = bytes }
  }

  /// The document.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    return .response(.json(document.withLock { $0 }))
  }
}
