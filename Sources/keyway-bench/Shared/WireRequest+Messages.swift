import TestKit

/// The requests of load generators.
extension WireRequest {
  /// Asks for a stream: of the changes from now on, or after the event with this id.
  static func subscription(_ target: String, after id: [UInt8] = []) -> WireRequest {
    var request = WireRequest("GET", target, ["Accept": "text/event-stream"])
    if !id.isEmpty { request.headers["Last-Event-ID"] = String(decoding: id, as: UTF8.self) }
    return request
  }

  /// Sets a key path, or makes an object.
  static func setting(_ path: String, _ json: String) -> WireRequest { WireRequest("PUT", path, body: json) }

  /// Sets one key path of many objects to the same value, in one transaction.
  static func transaction(setting keyPath: String, of objects: [String], _ json: String) -> WireRequest {
    let operations = objects.map { #"{"op":"set","object":"\#($0)","keyPath":"\#(keyPath)","value":\#(json)}"# }
    return WireRequest("POST", "/v1/transactions", body: #"{"operations":[\#(operations.joined(separator: ","))]}"#)
  }

  /// The message with this number as JSON, in so many bytes or a few more: what a `MessageScanner` finds in a stream.
  static func message(_ number: UInt64, sizeBytes: Int) -> String {
    let digits = String(number)
    let zeros = String(repeating: "0", count: max(0, MessageScanner.digitCount - digits.count))
    let mark = "@@\(zeros)\(digits)@"
    return "\"\(mark)\(String(repeating: "x", count: max(0, sizeBytes - mark.utf8.count)))\""
  }
}
