import Glibc
import HTTPTypes

/// A whole response that the server sends itself, after which the connection ends.
enum ClosingAnswer {
  /// Returns the status line, fields and body as they are sent. The length of the body is stated even if the body is
  /// not sent.
  static func bytes(_ response: Response, id: RequestID, hasBody: Bool) -> [UInt8] {
    var text = "HTTP/1.1 \(response.status.code) \(response.status.reasonPhrase)\r\n"
    text += "Date: \(StreamHead.date(time(nil)))\r\nConnection: close\r\nContent-Length: \(response.body.count)\r\n"
    for field in response.fields.lines { text += "\(field.name): \(field.value)\r\n" }
    for field in CommonFields.all { text += "\(field.name): \(field.value)\r\n" }
    text += "\(RequestID.fieldName): \(id.text)\r\n\r\n"
    return Array(text.utf8) + (hasBody ? response.body : [])
  }
}

/// The head of a stream's response, which the hub sends itself.
enum StreamHead {
  /// Returns the status line and fields, with the empty line that ends them.
  static func bytes(_ fields: FieldSection, version: HTTPVersion, requestID: RequestID?) -> [UInt8] {
    var text = version == .http11 ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.0 200 OK\r\n"
    text += "Date: \(date(time(nil)))\r\nConnection: close\r\n"
    if version == .http11 { text += "Transfer-Encoding: chunked\r\n" }
    for field in fields.lines { text += "\(field.name): \(field.value)\r\n" }
    if let requestID { text += "\(RequestID.fieldName): \(requestID.text)\r\n" }
    for field in CommonFields.all { text += "\(field.name): \(field.value)\r\n" }
    text += "\r\n"
    return Array(text.utf8)
  }

  /// Formats a moment, in seconds since 1970, for HTTP: `Sun, 06 Nov 1994 08:49:37 GMT`.
  static func date(_ moment: time_t) -> String {
    var moment = moment
    var parts = tm()
    gmtime_r(&moment, &parts)
    let weekday = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][Int(parts.tm_wday)]
    let month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][Int(parts.tm_mon)]
    let clock = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    return "\(weekday), \(two(parts.tm_mday)) \(month) \(parts.tm_year + 1_900) \(clock) GMT"
  }

  private static func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
