import HTTPServer
import HTTPTypes
import KeyValueModel

extension Response {
  /// Puts the id of its request into a problem, as its last member; other responses stay as they are.
  ///
  /// It is added to the bytes, because a problem is made, and kept for retries, where the request is not known.
  mutating func name(_ request: RequestID) {
    guard status.code >= 400, fields[.contentType] == Problem.mediaType, body.suffix(2).elementsEqual("}\n".utf8) else {
      return
    }
    body.removeLast(2)
    var member = Array(#","requestId":"#.utf8)
    member.appendJSONString(request.text)
    // The answer of another node, to which the request was passed on, says so already.
    if !body.suffix(member.count).elementsEqual(member) { body += member }
    body += "}\n".utf8
  }
}
