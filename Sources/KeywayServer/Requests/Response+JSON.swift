package import HTTPServer
import HTTPTypes
package import KeyValueModel

extension Response {
  private static let jsonType = HTTPField(name: .contentType, value: Body.json)

  /// A JSON response, which ends with a newline: its `ETag` is `tag`, and `Keyway-Cursor` names the state that it
  /// shows, `cursor`.
  static func json(
    _ body: consuming [UInt8], status: HTTPResponse.Status = .ok, tag: Cursor? = nil, cursor: Cursor? = nil
  ) -> Response {
    // Appended, since setting a field looks for fields of the same name first.
    var fields = HTTPFields()
    fields.reserveCapacity(5)
    fields.append(Self.jsonType)
    if let tag { fields.append(HTTPField(name: .eTag, value: tag.entityTag)) }
    if let cursor { fields.append(HTTPField(name: .keywayCursor, value: cursor.description)) }
    body.append(UInt8(ascii: "\n"))
    return Response(status: status, fields: fields, body: body)
  }

  /// A JSON object that has no revision.
  package static func json(_ body: JSONObject) -> Response {
    var bytes: [UInt8] = []
    body.appendJSON(to: &bytes)
    return json(bytes)
  }

  /// A JSON object that has no revision, as long as an answer may be.
  package static func json(_ body: JSONObject, within budget: ReadingBudget) throws(Problem) -> Response {
    var bytes: [UInt8] = []
    body.appendJSON(to: &bytes)
    try budget.check(bytes)
    return json(bytes)
  }

  /// The object or value as a write left it, which has gone too far to be refused: without a body where that would be
  /// longer than an answer may be.
  static func written(
    _ bytes: consuming [UInt8], status: HTTPResponse.Status, tag: Cursor, _ limits: RequestLimits
  ) -> Response {
    guard bytes.count > limits.answerBytes else { return json(bytes, status: status, tag: tag) }
    return Response(status: status, fields: [.eTag: tag.entityTag])
  }
}
