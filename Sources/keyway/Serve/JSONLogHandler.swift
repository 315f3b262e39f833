import Foundation
import KeyValueModel
import Logging

/// Writes each log entry as one JSON object a line to standard error.
struct JSONLogHandler: LogHandler {
  let label: String
  var metadata: Logger.Metadata = [:]
  var logLevel: Logger.Level

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var entry: JSONObject = [
      "time": .string(Date.now.formatted(.iso8601)),
      "level": .string(event.level.rawValue),
      "message": .string("\(event.message)"),
    ]
    for (key, value) in metadata.merging(event.metadata ?? [:], uniquingKeysWith: { _, new in new }) {
      entry[key] = .string("\(value)")
    }
    var bytes: [UInt8] = []
    entry.appendJSON(to: &bytes)
    bytes.append(UInt8(ascii: "\n"))
    StandardError.write(bytes)
  }
}
