/// A request of the crash test.
struct CrashRequest: Hashable, Sendable {
  /// The method, the path with its query, and the body, which is JSON.
  var method = "GET"
  var path: String
  var body: String?
  /// The value of `Keyway-Writer`.
  var writer: String?
  /// The value of `Last-Event-ID`.
  var lastEventID: String?
  /// Whether an event stream is wanted.
  var isStream = false

  /// The request as it stands on the wire.
  func bytes(port: UInt16) -> [UInt8] {
    var lines = ["\(method) \(path) HTTP/1.1", "Host: 127.0.0.1:\(port)"]
    if isStream { lines.append("Accept: text/event-stream") }
    if let writer { lines.append("Keyway-Writer: \(writer)") }
    if let lastEventID { lines.append("Last-Event-ID: \(lastEventID)") }
    if let body { lines += ["Content-Type: application/json", "Content-Length: \(body.utf8.count)"] }
    return Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")).utf8)
  }
}
