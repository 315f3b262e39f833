import HTTPServer
import HTTPTypes

extension NodeRequest {
  /// What a write says of itself in fields, to the node that carries it out.
  static let writeFields: [HTTPField.Name] = [
    .ifMatch, .ifNoneMatch, .contentType, .accept, .idempotencyKey, .keywayWriter, .keywayLifetime, .keywayCursor,
  ]

  /// Creates a client's request as it is forwarded to the node that answers it: with its body, its id, the address that
  /// it came from, and the named fields. `hasCredentials` says that the other node has to know who asks.
  init(passing request: borrowing Request, fields names: [HTTPField.Name], hasCredentials: Bool) {
    self.init(request.method.rawValue, Self.originForm(of: request.target))
    for name in names {
      if let value = request.header(name) { fields.append((name.rawName, value)) }
    }
    if hasCredentials { addCredentials(of: request) }
    fields.append((RequestID.fieldName, request.id.text))
    if request.address != .unknown { fields.append(("X-Forwarded-For", request.address.description)) }
    body = request.body()
  }

  /// Returns a request target as path and query (RFC 9112 §3.2.1), also if it was sent as a whole URL.
  static func originForm(of target: String) -> String {
    guard target.utf8.first != UInt8(ascii: "/") else { return target }
    var target = target
    if let authority = Target.authority(of: target), let range = target.firstRange(of: authority) {
      target = String(target[range.upperBound...])
    }
    return target.hasPrefix("/") ? target : "/\(target)"
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
