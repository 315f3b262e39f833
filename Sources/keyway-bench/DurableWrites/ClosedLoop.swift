import Glibc
import Histogram
import Support
import TestKit

/// A closed-loop load generator: connections on one thread's epoll set, each of which sends its next request when it
/// has the answer to the last one.
///
/// Like an audience, it must cost as little as possible: one `send` and one `read` for each request, no allocation, and
/// one reading of the clock for each answer.
struct ClosedLoop: ~Copyable {
  /// A group of connections that do the same.
  struct Lane {
    /// The name of the server in errors.
    var name: String
    /// The address of the server.
    var address: SocketAddress
    /// The number of connections.
    var connections: Int
    /// The requests, divided among the connections: no two connections send the same one as long as there are enough.
    var requests: [NumberedRequest]
    /// The length of the body of a successful answer, in bytes, if the status alone does not show success; otherwise
    /// nil.
    var answerBytes: Int?
  }

  /// The time limit for an answer, in seconds.
  private static let answerSeconds = 15
  private static let bufferBytes = 64 << 10

  private struct Member {
    var lane: Int
    var descriptor: Int32
    /// The index of its first request, and of the next one to send.
    var first: Int
    var next: Int
    var sent: UInt64 = 0
    var isWaiting = false
    var scanner = AnswerScanner()
  }

  private let epoll: Epoll
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private var lanes: [Lane]
  private var members: [Member]
  private var ready: [Int] = []
  private var number: UInt64 = 0
  private var waiting = 0

  /// Creates a load generator, and connects all its connections.
  init(_ lanes: [Lane]) throws {
    // Kept in local variables first, since an error must not leave a noncopyable value partially initialized.
    let epoll = try Epoll()
    var members: [Member] = []
    do {
      for (lane, plan) in lanes.enumerated() {
        for connection in 0..<plan.connections {
          let first = connection % plan.requests.count
          let descriptor = try plan.address.connect()
          members.append(Member(lane: lane, descriptor: descriptor, first: first, next: first))
          try epoll.addForReading(descriptor, index: members.count - 1)
        }
      }
    } catch {
      for member in members { close(member.descriptor) }
      throw error
    }
    self.epoll = epoll
    self.lanes = lanes
    self.members = members
    buffer = .allocate(capacity: Self.bufferBytes)
  }

  deinit {
    for member in members { close(member.descriptor) }
    buffer.deallocate()
  }

  /// Sends requests for `seconds` after the warm-up, and waits for the last answers. Returns for each lane the number
  /// of answers after the warm-up and their times, without the cores used. Every answer must be a 2xx.
  mutating func run(warmUpSeconds: Double, seconds: Double) throws -> [DurableReport.Load] {
    let start = SystemClock.now()
    let counted = start + UInt64(warmUpSeconds * 1e9)
    let end = counted + UInt64(seconds * 1e9)
    var histograms = lanes.map { _ in Latency.histogram() }
    // A start that differs from the numbers of other runs.
    number = start / 1000
    for index in members.indices { try send(index, at: SystemClock.now()) }
    var last = start
    while waiting > 0 {
      try wait()
      for index in ready {
        guard try read(index) else { continue }
        last = SystemClock.now()
        if last >= counted, last < end {
          histograms[members[index].lane].record((last - members[index].sent) / 1000)
        }
        if last < end { try send(index, at: last) }
      }
      guard !Task.isCancelled else { throw LoopbackError(.interrupted) }
      if ready.isEmpty {
        guard SystemClock.now() - last < UInt64(Self.answerSeconds) * 1_000_000_000 else {
          throw LoopbackError("\(waiting) requests were not answered in \(Self.answerSeconds) s")
        }
      }
    }
    return histograms.map {
      DurableReport.Load(perSecond: Double($0.totalCount) / max(seconds, 1e-9), latency: Latency($0))
    }
  }

  private mutating func wait() throws {
    var ready = ready
    self.ready = []
    ready.removeAll(keepingCapacity: true)
    try epoll.wait(milliseconds: 200) { ready.append($0) }
    self.ready = ready
  }

  private mutating func send(_ index: Int, at now: UInt64) throws {
    let (lane, request) = (members[index].lane, members[index].next)
    number += 1
    lanes[lane].requests[request].set(number)
    let descriptor = members[index].descriptor
    let bytes = lanes[lane].requests[request].bytes
    // The request is so short that it always fits into the socket buffer, which is empty after the last answer.
    let count = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    guard count == bytes.count else { throw LoopbackError(call: "send to \(lanes[lane].name)") }
    members[index].sent = now
    members[index].isWaiting = true
    waiting += 1
    let next = request + lanes[lane].connections
    members[index].next = next < lanes[lane].requests.count ? next : members[index].first
  }

  /// Reads from a connection. Returns true if its answer is complete.
  private mutating func read(_ index: Int) throws -> Bool {
    let name = lanes[members[index].lane].name
    let count = recv(members[index].descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
    guard count > 0 else {
      if count < 0, errno == EAGAIN || errno == EINTR { return false }
      throw LoopbackError("\(name) closed a connection")
    }
    guard members[index].isWaiting else { throw LoopbackError("\(name) answered without a request") }
    let outcome = members[index].scanner.take(UnsafeBufferPointer(rebasing: buffer[..<count]))
    if case .unfinished = outcome { return false }
    guard case .answer(let status, let bodyBytes) = outcome, (200..<300).contains(status),
      lanes[members[index].lane].answerBytes.map({ $0 == bodyBytes }) ?? true
    else { throw LoopbackError("\(name) answered: \(String(decoding: buffer[..<min(count, 1000)], as: UTF8.self))") }
    members[index].isWaiting = false
    waiting -= 1
    return true
  }
}

/// A request that is sent again and again, each time with another number in it: the written values differ, and all have
/// the same length.
struct NumberedRequest: Hashable, Sendable {
  /// The number of digits.
  static let digitCount = 12

  /// The bytes of the next request.
  private(set) var bytes: [UInt8]
  private let place: Int?

  /// Creates a request; its number replaces the first run of `digitCount` question marks. Without one, the request
  /// never changes.
  init(_ text: String) {
    bytes = Array(text.utf8)
    let mark = [UInt8](repeating: UInt8(ascii: "?"), count: Self.digitCount)
    let starts = 0..<max(0, bytes.count - mark.count + 1)
    place = starts.first { [bytes] in bytes[$0..<$0 + mark.count].elementsEqual(mark) }
    set(0)
  }

  /// Sets the number in the request to the last digits of `number`.
  mutating func set(_ number: UInt64) {
    guard let place else { return }
    var rest = number
    for offset in stride(from: place + Self.digitCount - 1, through: place, by: -1) {
      bytes[offset] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    }
  }
}

/// A scanner of HTTP/1.1 answers, however the bytes are split into pieces. It keeps only the status and the length of
/// an answer: it runs for every answer of a load generator, on the cores of the server that is measured.
struct AnswerScanner: Hashable, Sendable {
  /// The result of scanning bytes.
  enum Outcome: Hashable, Sendable {
    /// A part of an answer.
    case unfinished
    /// One complete answer, and nothing after it.
    case answer(status: Int, bodyBytes: Int)
    /// Not an answer that this scanner supports: the length of the body must be in the head.
    case malformed
  }

  private enum Place: UInt8 {
    case statusLine, fieldName, otherField, length, body
  }

  private static let lengthName = Array("content-length:".utf8)
  /// The maximum length of a body, in bytes; no benchmark requests a longer one.
  private static let maximumBodyBytes = 1 << 20
  /// The position of the status code in `HTTP/1.1 200 OK`.
  private static let codePlaces = 9..<12

  private var place = Place.statusLine
  private var column = 0
  private var status = 0
  private var bodyBytes: Int?
  private var left = 0

  /// Scans the next bytes. After an answer, the scanner is ready for another; after a malformed one, it is unusable.
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
        // Excess bytes are malformed, since there was no second request.
        return position == bytes.count ? answer : .malformed
      }
    }
    return .unfinished
  }

  private mutating func takeHead(_ byte: UInt8) -> Bool {
    defer { column += 1 }
    switch (place, byte) {
    case (_, UInt8(ascii: "\r")):
      // Ignored, so that a line with nothing else is empty.
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
      // Compares letters without regard to case; a colon is not changed by this.
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
