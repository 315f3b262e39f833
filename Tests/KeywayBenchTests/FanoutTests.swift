import TestKit
import Testing

@testable import keyway_bench

@Suite("The load generator's reading of streams")
struct FanoutTests {
  private static func message(_ number: UInt64) -> String {
    let digits = String(number)
    return "@@" + String(repeating: "0", count: 19 - digits.count) + digits + "@"
  }

  private static func scan(_ pieces: [ArraySlice<UInt8>]) -> [UInt64] {
    var scanner = MessageScanner()
    var numbers: [UInt64] = []
    for piece in pieces { Array(piece).withUnsafeBufferPointer { scanner.scan($0, into: &numbers) } }
    return numbers
  }

  private static func pieces(of text: String, seed: UInt64) -> [ArraySlice<UInt8>] {
    var generator = SplitMix64(seed: seed)
    var rest = Array(text.utf8)[...]
    var result: [ArraySlice<UInt8>] = []
    while !rest.isEmpty {
      result.append(rest.prefix(Int.random(in: 1...40, using: &generator)))
      rest = rest.dropFirst(result.last?.count ?? 0)
    }
    return result
  }

  @Test(
    "finds messages among other text, and nothing that only looks like one",
    arguments: [
      ("", []), ("data: {\"new\":\"\(message(5))xxx\"}\n\n", [5]), (message(1) + message(2), [1, 2]),
      ("@@12@\(message(3))", [3]), ("@@@@@\(message(4))@", [4]), ("a@b.c @@ \(message(6))", [6]),
      ("@@00000000000000000001x", []), ("@@00000000000000000001@", []),
      (message(9_999_999_999_999_999_999), [9_999_999_999_999_999_999]),
    ] as [(String, [UInt64])])
  func messages(text: String, numbers: [UInt64]) {
    #expect(Self.scan([Array(text.utf8)[...]]) == numbers)
    for seed in UInt64(1)...100 { #expect(Self.scan(Self.pieces(of: text, seed: seed)) == numbers, "seed \(seed)") }
  }

  /// Returns the stream of a subscriber; if chunked, with each event in a chunk of its own.
  private static func stream(_ numbers: [UInt64], isChunked: Bool) -> String {
    let events = numbers.map { "id: k-\($0)\nevent: change\ndata: {\"new\":\"\(message($0))xxxxxxxx\"}\n\n" }
    let body = events.map { isChunked ? String($0.utf8.count, radix: 16) + "\r\n\($0)\r\n" : $0 }.joined()
    let coding = isChunked ? "Transfer-Encoding: chunked\r\n" : ""
    return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\(coding)\r\n\(body)"
  }

  private static func subscriber(
    _ text: String, seed: UInt64, above number: UInt64 = 0
  ) throws -> (Subscriber, [UInt64]) {
    var subscriber = Subscriber()
    subscriber.expectNumbers(above: number)
    var numbers: [UInt64] = []
    for piece in pieces(of: text, seed: seed) {
      try Array(piece).withUnsafeBufferPointer { try subscriber.take($0, into: &numbers) }
    }
    return (subscriber, numbers)
  }

  @Test("counts every delivery, chunked or not, however the stream is cut", arguments: [true, false])
  func deliveries(isChunked: Bool) throws {
    let text = Self.stream([1, 2, 3, 40], isChunked: isChunked)
    for seed in UInt64(1)...100 {
      let (subscriber, numbers) = try Self.subscriber(text, seed: seed)
      #expect(numbers == [1, 2, 3, 40], "seed \(seed)")
      #expect(subscriber.isOpen)
      #expect(subscriber.delivered == 4)
      #expect(subscriber.doubled == 0)
      #expect(subscriber.outOfOrder == 0)
    }
  }

  @Test("sees doubles, and messages behind younger ones")
  func faults() throws {
    let (subscriber, numbers) = try Self.subscriber(Self.stream([1, 1, 3, 2, 4], isChunked: true), seed: 1)
    #expect(numbers == [1, 3, 4])
    #expect(subscriber.doubled == 1)
    #expect(subscriber.outOfOrder == 1)
  }

  @Test("does not count what an earlier run has published")
  func earlierRun() throws {
    let (subscriber, numbers) = try Self.subscriber(Self.stream([7, 11], isChunked: true), seed: 1, above: 10)
    #expect(numbers == [11])
    #expect(subscriber.outOfOrder == 1)
  }

  @Test("sees the end of a chunked stream")
  func end() throws {
    let (subscriber, _) = try Self.subscriber(Self.stream([1], isChunked: true) + "0\r\n\r\n", seed: 1)
    #expect(subscriber.isAtEnd)
  }

  @Test(
    "refuses an answer that is no stream",
    arguments: [
      ("HTTP/1.1 404 Not Found\r\n\r\n", Subscriber.Failure.status(404)), ("hello\r\n\r\n", .badHead),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", .badChunk),
    ])
  func refusal(text: String, failure: Subscriber.Failure) {
    #expect(throws: failure) { try Self.subscriber(text, seed: 1) }
  }

  @Test("a publication is as long as it was asked to be, and a message of the scanner")
  func publication() throws {
    let request = WireRequest.setting("/v1/objects/Note/1/text", WireRequest.message(77, sizeBytes: 100))
    var address = try SocketAddress(server: "http://127.0.0.1:8080")
    let text = request.text(to: address)
    #expect(text.hasPrefix("PUT /v1/objects/Note/1/text HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"))
    #expect(text.contains("\r\nContent-Length: 102\r\n\r\n\"@@"))
    #expect(text.split(separator: "\r\n\r\n").last?.utf8.count == 102)
    #expect(Self.scan([Array(text.utf8)[...]]) == [77])
    address.token = "abc"
    #expect(request.text(to: address).contains("\r\nAuthorization: Bearer abc\r\n"))
  }
}
