import HTTPServer
import HTTPTypes
import KeywayServer

/// A request to another node.
struct NodeRequest: Sendable {
  var method: String
  /// The path and the query, as they are sent.
  var target: String
  /// The fields besides `Host` and `Content-Length`; none has a line break in it.
  var fields: [(name: String, value: String)] = []
  var body: [UInt8] = []

  init(_ method: String, _ target: String) {
    self.method = method
    self.target = target
  }

  /// Returns the request with the name of its write, in `Keyway-Request`.
  func naming(_ write: PassedWrite) -> NodeRequest {
    var request = self
    request.fields.append((HTTPField.Name.keywayRequest.rawName, write.field))
    return request
  }

  /// Returns the request as it is sent over the wire (RFC 9112).
  func bytes(to address: NodeAddress) -> [UInt8] {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: \(address.authority)\r\n"
    for field in fields { head += "\(field.name): \(field.value)\r\n" }
    if !body.isEmpty || method == "POST" || method == "PUT" || method == "PATCH" {
      head += "Content-Length: \(body.count)\r\n"
    }
    return Array((head + "\r\n").utf8) + body
  }

  // MARK: A client's request

  /// The header fields of a client's write that are forwarded to the node that carries it out.
  static let writeFields: [HTTPField.Name] = [
    .ifMatch, .ifNoneMatch, .contentType, .accept, .idempotencyKey, .keywayWriter, .keywayLifetime, .keywayCursor,
  ]

  /// Creates a client's request as it is forwarded to the node that answers it: with its body, its id, the address that
  /// it came from, and the named fields. Includes the client's credentials if `hasCredentials`, for a node that
  /// authenticates clients.
  init(passing request: borrowing Request, fields names: [HTTPField.Name], hasCredentials: Bool) {
    self.init(request.method.rawValue, Target.originForm(of: request.target))
    for name in names {
      if let value = request.header(name) { fields.append((name.rawName, value)) }
    }
    if hasCredentials { addCredentials(of: request) }
    fields.append((RequestID.fieldName, request.id.text))
    if request.address != .unknown { fields.append(("X-Forwarded-For", request.address.description)) }
    body = request.body()
  }

  private mutating func addCredentials(of request: borrowing Request) {
    if let authorization = request.header(.authorization) {
      fields.append((HTTPField.Name.authorization.rawName, authorization))
    }
    if let cookie = (try? SessionCookie(in: request))?.forwarded {
      fields.append((HTTPField.Name.cookie.rawName, cookie))
    }
  }
}
