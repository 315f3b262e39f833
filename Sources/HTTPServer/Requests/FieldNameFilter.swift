/// Which header fields a request may have, in one word: a bit for the length of each name and its first and last letter
/// (a Bloom filter with one hash).
///
/// Most fields that a handler asks for were not sent. Where the bit of a name is not set, nobody need go through the
/// lines to find that out.
struct FieldNameFilter: Equatable {
  private var bits: UInt64 = 0

  /// Of no fields.
  init() {}

  /// A field of this name was sent.
  mutating func insert(_ name: UnsafeRawBufferPointer) {
    guard let first = name.first, let last = name.last else { return }
    bits |= Self.bit(count: name.count, first, last)
  }

  /// Whether a field of this name, upper and lower case being alike, may have been sent. False is certain.
  func mayContain(_ name: String) -> Bool {
    let name = name.utf8
    guard let first = name.first, let last = name.last else { return false }
    return bits & Self.bit(count: name.count, first, last) != 0
  }

  /// Letters differ from their other case in one bit alone (RFC 9110 §5.1: names are case-insensitive). The factors are
  /// those that keep what handlers ask for apart from what every browser sends.
  private static func bit(count: Int, _ first: UInt8, _ last: UInt8) -> UInt64 {
    1 << UInt64(truncatingIfNeeded: (count &+ Int(first | 0x20) &* 5 &+ Int(last | 0x20) &* 19) & 63)
  }
}
