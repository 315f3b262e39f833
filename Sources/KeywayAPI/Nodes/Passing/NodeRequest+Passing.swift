import HTTPServer
import HTTPTypes

extension NodeRequest {
  /// What a write says of itself in fields, to the node that carries it out.
  static let writeFields: [HTTPField.Name] = [
    .ifMatch, .ifNoneMatch, .contentType, .accept, .idempotencyKey, .keywayWriter, .keywayLifetime, .keywayCursor,
  ]

  /// A client's request as it is passed on to the node that answers it: with its body, its token, its name, where it
  /// came from, and those of its fields that are named.
  init(passing request: borrowing Request, fields names: [HTTPField.Name]) {
    var target = request.target
    if let authority = Target.authority(of: target), let range = target.firstRange(of: authority) {
      target = String(target[range.upperBound...])
    }
    self.init(request.method.rawValue, target.hasPrefix("/") ? target : "/\(target)")
    for name in names {
      if let value = request.header(name) { fields.append((name.rawName, value)) }
    }
    if let authorization = request.header(.authorization) {
      fields.append((HTTPField.Name.authorization.rawName, authorization))
    } else if let session = Session(in: request) {
      // A session is this node's; the token that it stands for is good on every one.
      fields.append((HTTPField.Name.authorization.rawName, "Bearer \(session.token)"))
    }
    fields.append((RequestID.fieldName, request.id.text))
    if request.address != .unknown { fields.append(("X-Forwarded-For", request.address.description)) }
    body = request.body()
  }
}

extension NodeAnswer {
  /// The most bytes that an answer to what was passed on may have.
  static let largestBytes = 256 << 20

  /// What of an answer is of the connection, or this server's own to say.
  private static let ownFields: Set<String> = [
    "connection", "keep-alive", "transfer-encoding", "content-length", "date", "server", "x-request-id",
    "x-content-type-options", "cross-origin-resource-policy", "vary",
  ]

  /// The answer as this node gives it to the client whose request it passed on. An error of the other node (5xx) names
  /// the state of that one, which may still read its store; its client is told that of this node.
  var response: Response {
    var response = Response(status: HTTPResponse.Status(code: status), body: body)
    for field in fields where !Self.ownFields.contains(field.name.lowercased()) {
      if field.name.lowercased().hasPrefix("access-control-") { continue }
      guard let name = HTTPField.Name(field.name), name != .keywayCursor || status < 500 else { continue }
      response.fields.append(HTTPField(name: name, value: field.value))
    }
    return response
  }

  /// The answer to a HEAD request, as this node gives it: what a stream begins with, or the length of the content that
  /// it stands for.
  var headResponse: Response {
    let response = response
    if status == 200, isEventStream { return Response(streamHead: response.fields) }
    let contentCount = self["Content-Length"].flatMap { Int($0) } ?? 0
    return Response(status: response.status, fields: response.fields, withholding: contentCount)
  }
}
