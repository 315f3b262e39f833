import Glibc
import TestKit

/// One subscriber of the benchmark, without its socket: it takes bytes, and counts deliveries.
///
/// It verifies delivery exactly once and in order without keeping the messages: their numbers increase strictly, so M
/// deliveries with increasing numbers are all M messages. A number equal to the last one is a duplicate; a smaller one
/// is late, or a repetition.
struct Subscriber: Sendable {
  /// The reasons why a stream is wrong.
  enum Failure: Error, Hashable, Sendable {
    case badHead
    case status(Int)
    case badChunk
  }

  /// The maximum size of a head, in bytes; a longer one is malformed.
  private static let maximumHeadBytes = 16 << 10

  /// True once the request has been sent.
  var hasAsked = false
  /// True once the response has begun with 200.
  private(set) var isOpen = false
  /// The number of messages whose number was greater than all before.
  private(set) var delivered = 0
  /// The number of messages that were repeated immediately.
  private(set) var doubled = 0
  /// The number of messages that arrived after a newer one.
  private(set) var outOfOrder = 0

  private var head: [UInt8] = []
  private var chunks: ChunkDecoder?
  private var scanner = MessageScanner()
  /// The number of the newest message received.
  private(set) var last: UInt64 = 0
  /// The counter of changes that stand for others; nil if those are not counted.
  var coalesced: CoalescedScanner?
  /// The scanner that keeps the id to resume from; nil if that is not kept.
  var ids: EventIDScanner?

  /// The number of messages received in all.
  var received: Int { delivered + doubled + outOfOrder }

  /// True if the server has ended the stream.
  var isAtEnd: Bool { chunks?.isAtEnd ?? false }

  /// Excludes messages with a number up to `number` from the deliveries: they belong to an earlier run.
  mutating func expectNumbers(above number: UInt64) { last = number }

  /// Prepares for a new connection; the counts remain.
  mutating func disconnect() {
    (hasAsked, isOpen) = (false, false)
    head = []
    chunks = nil
    scanner = MessageScanner()
  }

  /// Takes bytes from the socket, and appends the numbers that count as deliveries.
  mutating func take(_ bytes: UnsafeBufferPointer<UInt8>, into numbers: inout [UInt64]) throws(Failure) {
    guard isOpen else { return try takeHead(bytes, into: &numbers) }
    try takeBody(bytes, into: &numbers)
  }

  private mutating func takeHead(_ bytes: UnsafeBufferPointer<UInt8>, into numbers: inout [UInt64]) throws(Failure) {
    for (index, byte) in bytes.enumerated() {
      head.append(byte)
      guard head.count <= Self.maximumHeadBytes else { throw .badHead }
      guard byte == UInt8(ascii: "\n"), head.suffix(4).elementsEqual("\r\n\r\n".utf8) else { continue }
      guard let response = WireResponse(head: head) else { throw .badHead }
      guard response.status == 200 else { throw .status(response.status) }
      chunks = response.isChunked ? ChunkDecoder() : nil
      head = []
      isOpen = true
      return try takeBody(UnsafeBufferPointer(rebasing: bytes[(index + 1)...]), into: &numbers)
    }
  }

  private mutating func takeBody(
    _ bytes: UnsafeBufferPointer<UInt8>, into numbers: inout [UInt64]
  ) throws(Failure) {
    let known = numbers.count
    var isValid = true
    if chunks == nil {
      scanner.scan(bytes, into: &numbers)
      coalesced?.scan(bytes)
      ids?.scan(bytes)
    } else {
      var scanner = scanner
      var coalesced = coalesced.take()
      var ids = ids.take()
      isValid =
        chunks?.decode(bytes) {
          scanner.scan($0, into: &numbers)
          coalesced?.scan($0)
          ids?.scan($0)
        } ?? true
      self.scanner = scanner
      self.coalesced = coalesced
      self.ids = ids
    }
    count(&numbers, from: known)
    guard isValid else { throw .badChunk }
  }

  /// Counts the numbers from index `known` on, and keeps only those that are deliveries.
  private mutating func count(_ numbers: inout [UInt64], from known: Int) {
    var kept = known
    for index in known..<numbers.count {
      let number = numbers[index]
      if number > last {
        last = number
        delivered += 1
        numbers[kept] = number
        kept += 1
      } else if number == last {
        doubled += 1
      } else {
        outOfOrder += 1
      }
    }
    numbers.removeLast(numbers.count - kept)
  }
}

/// A scanner that finds the messages `@@<19 digits>@` in the bytes of a stream, however the bytes are split into
/// pieces.
///
/// It keeps only a few bytes between pieces, and allocates nothing: it runs for every delivery of a benchmark, beside
/// the server that is measured.
struct MessageScanner: Hashable, Sendable {
  /// The number of digits in a message: nanoseconds of the monotonic clock with leading zeros.
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
      // "@@@": the last two may begin the message.
      break
    case (.digits, UInt8(ascii: "@")):
      state = .oneMark
    default:
      state = .outside
    }
  }
}

/// A scanner that counts the changes of a stream that stand for others, however the bytes are split into pieces: every
/// `"coalesced":N`.
struct CoalescedScanner: Hashable, Sendable {
  private static let mark = Array("\"coalesced\":".utf8)

  /// The number of changes that stood for others.
  private(set) var changes = 0
  /// The number of changes that they stood for.
  private(set) var covered = 0

  private var matched = 0
  private var number: Int?

  /// Scans the next bytes.
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
    // The mark can only restart at its first byte, a quotation mark.
    matched = byte == Self.mark[matched] ? matched + 1 : byte == Self.mark[0] ? 1 : 0
  }
}

/// A scanner that keeps the last event ID of a stream (WHATWG HTML §9.2.6), however the bytes are split into pieces:
/// that of the last complete event.
struct EventIDScanner: Hashable, Sendable {
  private static let mark = Array("id: ".utf8)
  /// The maximum length of an ID, in bytes; Keyway makes no longer ones.
  private static let maximumBytes = 256

  /// The ID to resume from; empty before the first.
  private(set) var last: [UInt8] = []

  /// The number of bytes of the line that matched the mark, and the number received.
  private var matched = 0
  private var lineBytes = 0
  private var pending: [UInt8] = []

  /// Scans the next bytes.
  mutating func scan(_ bytes: UnsafeBufferPointer<UInt8>) {
    for byte in bytes { take(byte) }
  }

  private mutating func take(_ byte: UInt8) {
    if byte == UInt8(ascii: "\n") {
      // An empty line ends the event.
      if lineBytes == 0, !pending.isEmpty {
        last = pending
        pending.removeAll(keepingCapacity: true)
      }
      (matched, lineBytes) = (0, 0)
      return
    }
    if matched == Self.mark.count {
      if pending.count < Self.maximumBytes { pending.append(byte) }
    } else if lineBytes == matched, byte == Self.mark[matched] {
      matched += 1
      if matched == Self.mark.count { pending.removeAll(keepingCapacity: true) }
    }
    lineBytes += 1
  }
}
