internal import HTTPServer
internal import HTTPTypes
internal import KeyValueModel
internal import ModelStore
internal import OrderedCollections

/// `POST /v1/transactions`: operations as JSON.
extension KeywayAPI {
  /// The levels of a transaction around a value that it writes: the body, its list, the operation, the object to create.
  /// They come on top of those of a body, so that what a `PUT` of a key takes, a transaction takes.
  static let envelopeLevels = 4

  func commitTransaction(_ request: borrowing Request, _ target: Target) throws(Problem) -> HandlerResponse {
    try target.allowOnly()
    let body = try Body.object(of: request, depthLimit: Body.depthLimit + Self.envelopeLevels)
    guard case .array(let elements)? = body["operations"], body.members.count == 1 else {
      throw Problem(.invalidValue, "a transaction is {\"operations\":[…]}")
    }
    guard elements.count <= limits.transactionOperations else {
      throw Problem(
        .tooManyOperations,
        "\(elements.count) operations; a transaction has at most \(limits.transactionOperations)")
    }
    var operations: [Operation] = []
    for (index, element) in elements.enumerated() {
      do throws(ModelError) {
        operations.append(try OperationReader(element, store.schema, makeID: makeID).operation())
      } catch {
        var located = error
        located.operation = index
        throw Problem(located)
      }
    }
    return try write(operations, about: .transaction, request) { _, commit, _ in
      var bytes = Array("{\"revision\":\(commit.revision),\"results\":[".utf8)
      for (index, reference) in commit.results.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(contentsOf: "{\"object\":\"\(reference)\"}".utf8)
      }
      bytes.append(contentsOf: "]}".utf8)
      return Response(status: .ok, fields: [.contentType: Body.json], body: bytes)
    }
  }
}
