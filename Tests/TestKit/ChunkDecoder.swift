/// A decoder of the chunked coding (RFC 9112 §7.1) of a body that comes in pieces. It does not copy the body.
package struct ChunkDecoder: Hashable, Sendable {
  /// Creates a decoder at the beginning of a body.
  package init() {}

  private enum State: UInt8 {
    case size, sizeExtension, data, dataEnd, ended
  }

  private var state = State.size
  private var left: UInt64 = 0

  /// True once the last chunk has come.
  package var isAtEnd: Bool { state == .ended }

  /// Calls `body` with every run of data in `bytes`, in order. Returns false if the bytes are not in chunked coding.
  package mutating func decode(
    _ bytes: UnsafeBufferPointer<UInt8>, body: (UnsafeBufferPointer<UInt8>) -> Void
  ) -> Bool {
    var position = 0
    while position < bytes.count {
      switch state {
      case .data:
        let count = Int(min(UInt64(bytes.count - position), left))
        body(UnsafeBufferPointer(rebasing: bytes[position..<position + count]))
        position += count
        left -= UInt64(count)
        if left == 0 { state = .dataEnd }
      case .ended:
        // Trailers are ignored.
        return true
      case .size, .sizeExtension, .dataEnd:
        guard takeFraming(bytes[position]) else { return false }
        position += 1
      }
    }
    return true
  }

  private mutating func takeFraming(_ byte: UInt8) -> Bool {
    switch (state, byte) {
    case (.dataEnd, UInt8(ascii: "\n")):
      state = .size
      left = 0
    case (.dataEnd, UInt8(ascii: "\r")):
      break
    case (.size, UInt8(ascii: "\n")), (.sizeExtension, UInt8(ascii: "\n")):
      state = left == 0 ? .ended : .data
    case (.size, UInt8(ascii: ";")), (.size, UInt8(ascii: "\r")):
      state = .sizeExtension
    case (.sizeExtension, _):
      break
    case (.size, _):
      guard let digit = Self.hexadecimal(byte), left < 1 << 56 else { return false }
      left = left << 4 | UInt64(digit)
    default:
      return false
    }
    return true
  }

  private static func hexadecimal(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
