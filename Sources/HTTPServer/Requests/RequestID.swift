import Synchronization

/// The ID of one request, in the response's `X-Request-Id`, in the access log and in problems: given by the client, or
/// generated.
package struct RequestID: Hashable, Sendable {
  /// The name of the header field.
  package static let fieldName = "X-Request-Id"
  /// The ID: 1 to 128 visible ASCII characters, so that it cannot inject a line or another field.
  package let text: String

  /// Creates the ID that a client sent; nil if it is not valid.
  init?(sent bytes: UnsafeRawBufferPointer) {
    guard (1...128).contains(bytes.count), bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
    text = String(decoding: bytes, as: UTF8.self)
  }

  /// Creates the ID of a request that another one carries and that has none itself.
  init(carriedBy carrier: RequestID, number: Int) {
    text = "\(carrier.text.prefix(100)).\(number)"
  }

  /// Creates a generated ID.
  init(made text: String) {
    self.text = text
  }
}

/// Generates the IDs of requests that bring none: a word of this server, and a count. Any thread.
///
/// Both together fit into the 15 bytes that a `String` holds without allocating, up to 32 billion requests.
final class RequestIDs: Sendable {
  private static let digits = Array("0123456789abcdefghijklmnopqrstuv".utf8)

  private let last = Atomic<UInt64>(0)
  /// The word: seven digits, in the order in which they are written.
  private let word: UInt64

  /// Creates a generator whose IDs begin with a word derived from `random`.
  init(random: UInt64) {
    word = random
  }

  /// Returns an ID that this server has not generated before.
  func next() -> RequestID {
    let count = last.wrappingAdd(1, ordering: .relaxed).newValue
    let countDigits = max(1, (UInt64.bitWidth - count.leadingZeroBitCount + 4) / 5)
    return RequestID(
      made: String(unsafeUninitializedCapacity: 8 + countDigits) { text in
        for index in 0..<7 { text[index] = Self.digits[Int(word >> (5 * index) & 31)] }
        text[7] = UInt8(ascii: "-")
        for index in 0..<countDigits {
          text[8 + index] = Self.digits[Int(count >> (5 * (countDigits - 1 - index)) & 31)]
        }
        return 8 + countDigits
      })
  }
}
