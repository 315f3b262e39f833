package import HTTPServer
import HTTPTypes
package import KeyValueModel

extension Response {
  private static let jsonType: FieldSection = [.contentType: Body.json]

  /// Returns a JSON response, which ends with a newline. Its `ETag` is `tag`, and its `Keyway-Cursor` is `cursor`, the
  /// state that it shows.
  static func json(
    _ body: consuming [UInt8], status: HTTPResponse.Status = .ok, tag: Cursor? = nil, cursor: Cursor? = nil
  ) -> Response {
    var fields = FieldSection()
    fields.append(contentsOf: jsonType)
    if let tag { fields.append(.eTag, tag, isTag: true) }
    if let cursor { fields.append(.keywayCursor, cursor) }
    body.append(UInt8(ascii: "\n"))
    return Response(status: status, fields: fields, body: body)
  }

  /// Returns a JSON object without a revision.
  package static func json(_ body: JSONObject) -> Response {
    var bytes: [UInt8] = []
    body.appendJSON(to: &bytes)
    return json(bytes)
  }

  /// Returns a JSON object without a revision. Throws `too-many-bytes` if it is too long for a response.
  package static func json(_ body: JSONObject, within budget: ReadingBudget) throws(Problem) -> Response {
    var bytes: [UInt8] = []
    body.appendJSON(to: &bytes)
    try budget.check(bytes)
    return json(bytes)
  }

  /// Returns the object or value as a write left it. The write can no longer be refused, so the response has no body if
  /// that would be too long.
  static func written(
    _ bytes: consuming [UInt8], status: HTTPResponse.Status, tag: Cursor, _ limits: RequestLimits
  ) -> Response {
    guard bytes.count > limits.answerBytes else { return json(bytes, status: status, tag: tag) }
    return Response(status: status, fields: [.eTag: tag.entityTag])
  }
}
