/// Counts the changes of a stream that stand for others, wherever the pieces begin and end: every `"coalesced":N` in
/// it.
struct CoalescedScanner: Hashable, Sendable {
  private static let mark = Array("\"coalesced\":".utf8)

  /// How many changes stood for others.
  private(set) var changes = 0
  /// How many they stood for.
  private(set) var covered = 0

  private var matched = 0
  private var number: Int?

  /// Takes in what comes next.
  mutating func scan(_ bytes: UnsafeBufferPointer<UInt8>) {
    for byte in bytes { take(byte) }
  }

  private mutating func take(_ byte: UInt8) {
    if matched == Self.mark.count {
      if case UInt8(ascii: "0")...UInt8(ascii: "9") = byte {
        number = (number ?? 0) * 10 + Int(byte - UInt8(ascii: "0"))
        return
      }
      if let number {
        changes += 1
        covered += number
      }
      (matched, number) = (0, nil)
    }
    // The mark begins with a quotation mark, and has no other that it could begin with anew.
    matched = byte == Self.mark[matched] ? matched + 1 : byte == Self.mark[0] ? 1 : 0
  }
}
