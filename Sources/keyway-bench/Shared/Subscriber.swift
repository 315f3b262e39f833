import TestKit

/// One subscriber of the benchmark, without its socket: bytes in, deliveries counted.
///
/// Exactly once and in order is seen without keeping the messages: their numbers grow strictly, so M deliveries with
/// growing numbers are all M messages. A number equal to the last is a double; a smaller one came late, or once more.
struct Subscriber: Sendable {
  /// What is wrong with a stream.
  enum Failure: Error, Hashable, Sendable {
    case badHead
    case status(Int)
    case badChunk
  }

  /// A head that is longer is none.
  static let maximumHeadBytes = 16 << 10

  /// Whether the request has been sent.
  var hasAsked = false
  /// Whether the response has begun with 200.
  private(set) var isOpen = false
  /// How many messages came with a number over all before.
  private(set) var delivered = 0
  /// How many came a second time in a row.
  private(set) var doubled = 0
  /// How many came behind a younger one.
  private(set) var outOfOrder = 0

  private var head: [UInt8] = []
  private var chunks: ChunkDecoder?
  private var scanner = MessageScanner()
  /// The number of the last message that came.
  private(set) var last: UInt64 = 0
  /// The changes that stood for others, where those are to be counted.
  var coalesced: CoalescedScanner?
  /// The id to resume from, where that is to be kept.
  var ids: EventIDScanner?

  /// How many messages came at all.
  var received: Int { delivered + doubled + outOfOrder }

  /// Whether the server has ended the stream.
  var isAtEnd: Bool { chunks?.isAtEnd ?? false }

  /// From now on nothing with a number up to `number` counts as a delivery: it is of an earlier run.
  mutating func expectNumbers(above number: UInt64) { last = number }

  /// Its connection is cut; it keeps what it has counted.
  mutating func disconnect() {
    (hasAsked, isOpen) = (false, false)
    head = []
    chunks = nil
    scanner = MessageScanner()
  }

  /// Takes what was read from the socket and appends the numbers that count as deliveries.
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

  /// Counts the numbers from `known` on, and keeps of them only those that are deliveries.
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
