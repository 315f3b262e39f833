import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Support

/// The name of a write that one node forwards to another: the field `Keyway-Request` of that request.
///
/// The id is random. The node that the client addressed creates it, and it is part of the attachment of the commit that
/// carries out the write. So every reader of the journal recognizes a write that was sent to two nodes, or twice, as
/// one write.
struct PassedWrite: Hashable, Sendable {
  /// The id of the write.
  let id: WriteID
  /// The state of the node that created the id, at that time: only later commits can have carried out the write.
  let since: Cursor
  /// True if the node that receives it must carry it out itself and not forward it further.
  var isFinal = false
  /// True if it was sent before without an answer.
  var isAgain = false

  private static let finalWord = "final"
  private static let againWord = "again"

  /// Creates a name with a new id, made in a state.
  init(since: Cursor) {
    (id, self.since) = (.random(), since)
  }

  /// Reads the name in a request; nil if a client sent the write. Throws `malformed-query`.
  init?(of request: borrowing Request) throws(Problem) {
    guard let field = request.header(.keywayRequest) else { return nil }
    try self.init(field)
  }

  /// Reads the value of a field: the id as 32 hexadecimal digits, the state, and the words that apply, each preceded by
  /// a space. Throws `malformed-query`.
  init(_ field: String) throws(Problem) {
    let parts = field.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count >= 2, let id = WriteID(hexadecimal: parts[0]), let since = Cursor(String(parts[1])),
      Set(parts.dropFirst(2)).isSubset(of: [Self.finalWord[...], Self.againWord[...]])
    else { throw Problem(.malformedQuery, "Keyway-Request is not the name of a write that a node forwards") }
    (self.id, self.since) = (id, since)
    isFinal = parts.dropFirst(2).contains { $0 == Self.finalWord }
    isAgain = parts.dropFirst(2).contains { $0 == Self.againWord }
  }

  /// The value of the field.
  var field: String {
    ([id.hexadecimal, since.description] + (isFinal ? [Self.finalWord] : []) + (isAgain ? [Self.againWord] : []))
      .joined(separator: " ")
  }
}

extension WriteID {
  /// Parses bytes, since nodes read an id for each write and characters take many times as long.
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
