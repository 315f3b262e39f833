import Glibc

/// Finds the messages `@@<19 digits>@` in the bytes of a stream, wherever the pieces begin and end.
///
/// It keeps 24 bytes between pieces and allocates nothing: it runs once for every delivery of a benchmark, beside the
/// server that is measured.
struct MessageScanner: Hashable, Sendable {
  /// How many digits a message has: nanoseconds of the monotonic clock with leading zeros.
  static let digitCount = 19

  private enum State: UInt8 {
    case outside, oneMark, digits
  }

  private var state = State.outside
  private var digits: UInt8 = 0
  private var number: UInt64 = 0

  /// Appends the number of every message that ends in `bytes`, in order.
  mutating func scan(_ bytes: UnsafeBufferPointer<UInt8>, into numbers: inout [UInt64]) {
    var position = 0
    while position < bytes.count {
      if state == .outside {
        guard let mark = Self.firstMark(in: bytes, from: position) else { return }
        position = mark + 1
        state = .oneMark
        continue
      }
      take(bytes[position], into: &numbers)
      position += 1
    }
  }

  private static func firstMark(in bytes: UnsafeBufferPointer<UInt8>, from position: Int) -> Int? {
    guard let base = bytes.baseAddress,
      let mark = memchr(base + position, Int32(UInt8(ascii: "@")), bytes.count - position)
    else { return nil }
    return UnsafeRawPointer(mark) - UnsafeRawPointer(base)
  }

  private mutating func take(_ byte: UInt8, into numbers: inout [UInt64]) {
    switch (state, byte) {
    case (.oneMark, UInt8(ascii: "@")):
      state = .digits
      digits = 0
      number = 0
    case (.digits, UInt8(ascii: "0")...UInt8(ascii: "9")) where digits < Self.digitCount:
      number = number &* 10 &+ UInt64(byte &- UInt8(ascii: "0"))
      digits += 1
    case (.digits, UInt8(ascii: "@")) where digits == Self.digitCount:
      state = .outside
      numbers.append(number)
    case (.digits, UInt8(ascii: "@")) where digits == 0:
      // "@@@": the last two may be the beginning.
      break
    case (.digits, UInt8(ascii: "@")):
      state = .oneMark
    default:
      state = .outside
    }
  }
}
