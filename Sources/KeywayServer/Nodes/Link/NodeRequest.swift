import HTTPTypes

/// A request to another node.
struct NodeRequest: Sendable {
  var method: String
  /// Path and query, as they are sent.
  var target: String
  /// The fields besides `Host` and `Content-Length`; none has a line break in it.
  var fields: [(name: String, value: String)] = []
  var body: [UInt8] = []

  init(_ method: String, _ target: String) {
    self.method = method
    self.target = target
  }

  /// The same with what nodes call it.
  func naming(_ write: PassedWrite) -> NodeRequest {
    var request = self
    request.fields.append((HTTPField.Name.keywayRequest.rawName, write.field))
    return request
  }

  /// As it goes over the wire (RFC 9112).
  func bytes(to address: NodeAddress) -> [UInt8] {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: \(address.authority)\r\n"
    for field in fields { head += "\(field.name): \(field.value)\r\n" }
    if !body.isEmpty || method == "POST" || method == "PUT" || method == "PATCH" {
      head += "Content-Length: \(body.count)\r\n"
    }
    return Array((head + "\r\n").utf8) + body
  }
}
