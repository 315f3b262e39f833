import Testing

@testable import HTTPServer

@Suite(.serialized, .timeLimit(.minutes(60))) struct StreamFateTests {
  private static let large = String(repeating: "x", count: 60_000) + "\n\n"

  private func subscribed(_ test: TestServer, receiveBuffer: Int32? = nil) throws -> TestClient {
    let client = try TestClient(port: test.server.port, receiveBuffer: receiveBuffer)
    client.get("/")
    _ = client.read(until: "retry: 1\n\n\r\n")
    return client
  }

  @Test func aReaderThatStopsIsToldOfItsOverflowWhileOthersGoOn() async throws {
    let test = try TestServer.streaming(overflow: .disconnect) { $0.pendingBytesPerStream = 100_000 }
    let slow = try subscribed(test, receiveBuffer: 4_096)
    let quick = try subscribed(test)
    // Three times as much as a kernel buffers for one socket.
    for number in 0..<200 {
      test.post("data: \(number)" + Self.large)
      _ = quick.read(until: "data: \(number)" + Self.large)
    }
    let all = slow.readToEnd()
    #expect(all.hasSuffix("1b\r\nevent: bye\ndata: overflow\n\n\r\n0\r\n\r\n"))
    #expect(isWellFramed(all))
    #expect(await test.listener.next(1) == [.overflow])
    test.post("still here\n\n")
    #expect(quick.read(until: "still here\n\n").hasSuffix("still here\n\n"))
    #expect(test.hub.pendingBytes == 0)
    #expect(test.listener.misses.isEmpty && test.listener.questions.isEmpty && test.hub.laggingStreams == 0)
  }

  @Test func aReaderThatTakesNothingIsCut() async throws {
    let test = try TestServer.streaming {
      $0.pendingBytesPerStream = 100_000_000
      $0.stallSeconds = 1
    }
    let slow = try subscribed(test, receiveBuffer: 4_096)
    let quick = try subscribed(test)
    for number in 0..<200 {
      test.post("data: \(number)" + Self.large)
      _ = quick.read(until: "data: \(number)" + Self.large)
    }
    #expect(await test.listener.next(1) == [.stalled])
    #expect(test.hub.openStreams == 1)
    _ = slow.readToEnd()
    #expect(slow.isAtEnd)
  }

  @Test func anEventLongerThanTheLimitReachesAReaderThatReads() throws {
    let test = try TestServer.streaming { $0.pendingBytesPerStream = 1_000 }
    let client = try subscribed(test, receiveBuffer: 4_096)
    let long = String(repeating: "y", count: 8_000_000) + "\n\n"
    test.post(long)
    #expect(client.read(until: "\n\n\r\n").utf8.count == long.utf8.count + 10)
  }

  @Test func drainingSaysFarewellToEveryStreamAndEndsItsResponse() async throws {
    let test = try TestServer.streaming()
    let clients = try (0..<20).map { _ in try subscribed(test) }
    test.post("data: 1\n\n")
    test.hub.drain(until: .now + .seconds(5))
    for client in clients {
      #expect(
        client.readToEnd() == "9\r\ndata: 1\n\n\r\n1b\r\nevent: bye\ndata: shutdown\n\n\r\n0\r\n\r\n")
    }
    #expect(await test.listener.next(20) == Array(repeating: .shutdown, count: 20))
    #expect(throws: StreamHubError.draining) { try test.hub.open(prelude: EventBytes([]), channel: nil) }
  }

  @Test func aSilentStreamGetsHeartbeatsThatNameTheLastPosition() throws {
    let test = try TestServer.streaming { $0.heartbeatSeconds = 1 }
    test.hub.post([], position: 7)
    let client = try subscribed(test)
    #expect(client.read(until: "\n\n\r\n").hasSuffix("event: heartbeat\nid: 7\n\n\r\n"))
    test.hub.post([], position: 8)
    #expect(client.read(until: "id: 8\n\n\r\n").hasSuffix("event: heartbeat\nid: 8\n\n\r\n"))
  }

  @Test func aStreamThatLivedLongEnoughIsSentAway() async throws {
    let test = try TestServer.streaming { $0.lifetimeSeconds = 1 }
    let client = try subscribed(test)
    #expect(client.readToEnd() == "1b\r\nevent: bye\ndata: lifetime\n\n\r\n0\r\n\r\n")
    #expect(await test.listener.next(1) == [.lifetime])
  }

  @Test func stoppingTheHubEndsWhatIsOpen() async throws {
    let test = try TestServer.streaming()
    let client = try subscribed(test)
    test.hub.stop()
    _ = client.readToEnd()
    #expect(client.isAtEnd)
    #expect(test.listener.history.map(\.end) == [.shutdown])
    #expect(test.hub.openStreams == 0)
  }

  /// Returns true if the text consists of whole chunks, the last of them empty.
  private func isWellFramed(_ text: String) -> Bool {
    var rest = Array(text.utf8)[...]
    while let line = rest.firstIndex(of: 13) {
      guard let size = Int(String(decoding: rest[..<line], as: UTF8.self), radix: 16) else { return false }
      let end = line + 2 + size
      guard rest.count >= 2, end + 2 <= rest.endIndex, rest[end] == 13, rest[end + 1] == 10 else { return false }
      rest = rest[(end + 2)...]
      if size == 0 { return rest.isEmpty }
    }
    return false
  }
}
