/// The requests of the benchmarks.
extension SocketAddress {
  /// Subscribes to a key path: what is told from now on, or after the event with this ID.
  func subscription(_ path: String, lastEventID: [UInt8] = []) -> [UInt8] {
    let cursor = lastEventID.isEmpty ? "" : "Last-Event-ID: \(String(decoding: lastEventID, as: UTF8.self))\r\n"
    return Array(
      """
      GET \(path)?options=new HTTP/1.1\r
      Host: \(hostField)\r
      Accept: text/event-stream\r
      \(cursor)\r

      """.utf8)
  }

  /// Reads a resource as JSON.
  func reading(_ path: String) -> [UInt8] { Array("GET \(path) HTTP/1.1\r\nHost: \(hostField)\r\n\r\n".utf8) }

  /// Sets a key path to the message with this number.
  func publication(_ path: String, _ number: UInt64, sizeBytes: Int) -> [UInt8] {
    setting(path, Self.message(number, sizeBytes: sizeBytes))
  }

  /// The message with this number, as JSON.
  static func message(_ number: UInt64, sizeBytes: Int) -> String {
    let digits = String(number)
    let zeros = String(repeating: "0", count: max(0, MessageScanner.digitCount - digits.count))
    let mark = "@@\(zeros)\(digits)@"
    let filling = String(repeating: "x", count: max(0, sizeBytes - mark.utf8.count))
    return "\"\(mark)\(filling)\""
  }

  /// Sets values of objects, all in one transaction.
  func transaction(setting values: [(object: String, keyPath: String, json: String)]) -> [UInt8] {
    let operations = values.map { value in
      #"{"op":"set","object":"\#(value.object)","keyPath":"\#(value.keyPath)","value":\#(value.json)}"#
    }
    let json = "{\"operations\":[\(operations.joined(separator: ","))]}"
    return Array(
      """
      POST /v1/transactions HTTP/1.1\r
      Host: \(hostField)\r
      Content-Type: application/json\r
      Content-Length: \(json.utf8.count)\r
      \r
      \(json)
      """.utf8)
  }

  /// Sets a key path, or makes an object.
  func setting(_ path: String, _ json: String) -> [UInt8] {
    Array(
      """
      PUT \(path) HTTP/1.1\r
      Host: \(hostField)\r
      Content-Type: application/json\r
      Content-Length: \(json.utf8.count)\r
      \r
      \(json)
      """.utf8)
  }
}
