/// Reads answers of HTTP/1.1 off a connection, wherever the pieces begin and end, and keeps nothing of them but the
/// status and the length: it runs for every answer of a load generator, on the cores of the server that is measured.
struct AnswerScanner: Hashable, Sendable {
  /// What has come so far.
  enum Outcome: Hashable, Sendable {
    /// A part of an answer.
    case unfinished
    /// One whole answer, and nothing behind it.
    case answer(status: Int, bodyBytes: Int)
    /// No answer that this reads: the length of the body has to be in the head.
    case malformed
  }

  private enum Place: UInt8 {
    case statusLine, fieldName, otherField, length, body
  }

  private static let lengthName = Array("content-length:".utf8)
  /// A longer body than this is none that a benchmark asks for.
  private static let maximumBodyBytes = 1 << 20
  /// Where the status code is in `HTTP/1.1 200 OK`.
  private static let codePlaces = 9..<12

  private var place = Place.statusLine
  private var column = 0
  private var status = 0
  private var bodyBytes: Int?
  private var left = 0

  /// Takes in what comes next. After an answer it is ready for another; after a malformed one it is of no use.
  mutating func take(_ bytes: UnsafeBufferPointer<UInt8>) -> Outcome {
    var position = 0
    while position < bytes.count {
      if place == .body {
        let count = min(left, bytes.count - position)
        position += count
        left -= count
      } else {
        guard takeHead(bytes[position]) else { return .malformed }
        position += 1
      }
      if place == .body, left == 0 {
        let answer = Outcome.answer(status: status, bodyBytes: bodyBytes ?? 0)
        self = AnswerScanner()
        // There was no second request.
        return position == bytes.count ? answer : .malformed
      }
    }
    return .unfinished
  }

  private mutating func takeHead(_ byte: UInt8) -> Bool {
    defer { column += 1 }
    switch (place, byte) {
    case (_, UInt8(ascii: "\r")):
      // Counts for nothing: an empty line is one where nothing else came.
      column -= 1
    case (.statusLine, UInt8(ascii: "\n")):
      guard (100...599).contains(status) else { return false }
      beginLine()
    case (_, UInt8(ascii: "\n")):
      if place == .fieldName, column == 0 { return endHead() }
      beginLine()
    case (.statusLine, _):
      guard Self.codePlaces.contains(column) else { break }
      guard let digit = Self.digit(byte) else { return false }
      status = status * 10 + digit
    case (.fieldName, _):
      // Letters in either case; a colon keeps its bits.
      guard byte | 0x20 == Self.lengthName[column] else {
        place = .otherField
        break
      }
      if column == Self.lengthName.count - 1 {
        place = .length
        bodyBytes = 0
      }
    case (.length, UInt8(ascii: " ")):
      break
    case (.length, _):
      guard let digit = Self.digit(byte), let length = bodyBytes, length <= Self.maximumBodyBytes else { return false }
      bodyBytes = length * 10 + digit
    default:
      break
    }
    return true
  }

  private mutating func beginLine() {
    place = .fieldName
    column = -1
  }

  private mutating func endHead() -> Bool {
    let hasNoBody = status == 204 || status == 304
    guard let length = hasNoBody ? 0 : bodyBytes, length <= Self.maximumBodyBytes else { return false }
    place = .body
    left = length
    return true
  }

  private static func digit(_ byte: UInt8) -> Int? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
    default: nil
    }
  }
}
