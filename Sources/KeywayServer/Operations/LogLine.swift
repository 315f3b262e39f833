import KeyValueModel
package import Logging
import Support

/// One line of the log while it is encoded. Whatever its values are, it stays one line, and no value looks like another
/// field.
package struct LogLine {
  private let format: LogFormat
  private var bytes: [UInt8] = []

  /// Creates a line without fields. `label` names the part of the program, `milliseconds` is the time since 1970.
  package init(_ format: LogFormat, at milliseconds: Int64, _ level: Logger.Level, label: String, message: String) {
    self.format = format
    bytes.reserveCapacity(192)
    let time = RFC3339.dateTime(milliseconds: milliseconds)
    switch format {
    case .text:
      bytes += "\(time) \(level.rawValue) \(label): ".utf8
      Self.append(plain: message, to: &bytes)
    case .json:
      bytes += #"{"time":"\#(time)","level":"\#(level.rawValue)","label":"\#(label)","message":"#.utf8
      bytes.appendJSONString(message)
    }
  }

  /// Adds a field. `name` must not come from outside the program: it is not escaped.
  package mutating func add(_ name: String, _ value: String) {
    begin(name)
    switch format {
    case .json: bytes.appendJSONString(value)
    case .text:
      if Self.isWord(value) {
        bytes += value.utf8
      } else {
        bytes.append(UInt8(ascii: "\""))
        Self.append(plain: value, to: &bytes, quoted: true)
        bytes.append(UInt8(ascii: "\""))
      }
    }
  }

  /// Adds a field with a number.
  package mutating func add(_ name: String, _ value: Int) {
    begin(name)
    bytes += String(value).utf8
  }

  /// Adds a field with a duration in milliseconds, with three decimal places.
  package mutating func add(_ name: String, nanoseconds: Int64) {
    begin(name)
    let microseconds = nanoseconds / 1_000
    bytes += "\(microseconds / 1_000).\((microseconds % 1_000).padded(to: 3))".utf8
  }

  /// Returns the bytes of the line, with its newline.
  package consuming func ended() -> [UInt8] {
    if format == .json { bytes.append(UInt8(ascii: "}")) }
    bytes.append(UInt8(ascii: "\n"))
    return bytes
  }

  private mutating func begin(_ name: String) {
    switch format {
    case .text: bytes += " \(name)=".utf8
    case .json: bytes += ",\"\(name)\":".utf8
    }
  }

  /// Returns true if a value needs no quotation marks: it is not empty and consists of visible ASCII characters other
  /// than the quotation mark and the backslash.
  private static func isWord(_ value: String) -> Bool {
    !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 != 0x22 && $0 != 0x5C && $0 < 0x7F }
  }

  /// Appends text in which no character ends a line or moves a terminal's cursor: such characters are escaped. With
  /// `quoted`, quotation marks and backslashes are escaped too.
  private static func append(plain text: String, to bytes: inout [UInt8], quoted: Bool = false) {
    if !quoted, text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) {
      bytes += text.utf8
      return
    }
    for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator:
        bytes += "\\u{\(String(scalar.value, radix: 16))}".utf8
      default:
        if quoted, scalar == "\"" || scalar == "\\" { bytes.append(UInt8(ascii: "\\")) }
        bytes += String(scalar).utf8
      }
    }
  }
}

/// The format of the lines of the log.
package enum LogFormat: String, CaseIterable, Sendable {
  /// For people: `TIME LEVEL LABEL: NAME=VALUE … MESSAGE`.
  case text
  /// For programs: one JSON object per line.
  case json
}
