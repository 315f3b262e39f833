import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Support

/// The name of a write that one node passes on to another: the field `Keyway-Request` of that request.
///
/// The id is random, made by the node that the client asked, and stands in the attachment of the commit that does the
/// write. So a write that was sent to two nodes, or twice, can be told to be one by every reader of the journal.
struct PassedWrite: Hashable, Sendable {
  /// The id of the write.
  let id: WriteID
  /// The state of the node that made the id, then: the write can have been done by later commits alone.
  let since: Cursor
  /// True if the node that gets it is to carry it out itself, and to pass it on no further.
  var isFinal = false
  /// True if it was sent before, and no answer came.
  var isAgain = false

  private static let finalWord = "final"
  private static let againWord = "again"

  /// Creates a new name in a state.
  init(since: Cursor) {
    (id, self.since) = (.random(), since)
  }

  /// Reads the name in a request; nil if the write is a client's own. Throws `malformed-query`.
  init?(of request: borrowing Request) throws(Problem) {
    guard let field = request.header(.keywayRequest) else { return nil }
    try self.init(field)
  }

  /// Reads the value of a field: the id as 32 hexadecimal digits, the state, and the words that hold, each behind a
  /// blank. Throws `malformed-query`.
  init(_ field: String) throws(Problem) {
    let parts = field.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count >= 2, let id = WriteID(hexadecimal: parts[0]), let since = Cursor(String(parts[1])),
      Set(parts.dropFirst(2)).isSubset(of: [Self.finalWord[...], Self.againWord[...]])
    else { throw Problem(.malformedQuery, "Keyway-Request is what a node says of a write that it passes on") }
    (self.id, self.since) = (id, since)
    isFinal = parts.dropFirst(2).contains { $0 == Self.finalWord }
    isAgain = parts.dropFirst(2).contains { $0 == Self.againWord }
  }

  /// As it is sent.
  var field: String {
    ([id.hexadecimal, since.description] + (isFinal ? [Self.finalWord] : []) + (isAgain ? [Self.againWord] : []))
      .joined(separator: " ")
  }
}

extension WriteID {
  /// By bytes: nodes read one for each write, and characters take many times as long.
  fileprivate init?(hexadecimal text: Substring) {
    guard text.utf8.count == 2 * Self.byteCount else { return nil }
    var (high, low): (UInt64, UInt64) = (0, 0)
    for byte in text.utf8 {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      default: return nil
      }
      (high, low) = (high << 4 | low >> 60, low << 4 | UInt64(digit))
    }
    self.init(high: high, low: low)
  }

  fileprivate var hexadecimal: String { high.padded(to: 16, radix: 16) + low.padded(to: 16, radix: 16) }
}
