import Glibc
import HTTPTypes

/// A whole response that the server sends itself, and after which the connection ends.
enum ClosingAnswer {
  /// Status line, fields and body as they go over the wire. The length of the body is told also where it is not sent.
  static func bytes(_ response: Response, id: RequestID, hasBody: Bool) -> [UInt8] {
    var text = "HTTP/1.1 \(response.status.code) \(response.status.reasonPhrase)\r\n"
    text += "Date: \(StreamHead.date(time(nil)))\r\nConnection: close\r\nContent-Length: \(response.body.count)\r\n"
    for field in response.fields where field.name != .contentLength && field.name != .connection {
      text += "\(field.name.rawName): \(field.value)\r\n"
    }
    for field in CommonFields.all { text += "\(field.name): \(field.value)\r\n" }
    text += "\(RequestID.fieldName): \(id.text)\r\n\r\n"
    return Array(text.utf8) + (hasBody ? response.body : [])
  }
}
