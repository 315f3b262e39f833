import HTTPTypes
import Support
import TestKit
import Testing

@testable import HTTPServer

/// Readers that are slower than their events, and are not disconnected for that.
@Suite(.serialized, .timeLimit(.minutes(60))) struct LaggingTests {
  private static let padding = String(repeating: "x", count: 60_000)

  private static func event(_ number: Int) -> EventBytes {
    EventBytes(Array("\(number) \(padding)\n\n".utf8), position: UInt64(number))
  }

  private func event(_ text: String, position: UInt64 = 0) -> EventBytes {
    EventBytes(Array("\(text)\n\n".utf8), position: position)
  }

  /// A reader that does not read and lags, and a reader of the same channel that reads: streams 1 and 2.
  private struct Pair {
    let slow: TestClient
    let quick: TestClient
    let firstMissed: Int
    let lastPosted: Int
  }

  private func subscribed(_ test: TestServer, _ target: String = "/", receiveBuffer: Int32? = nil) throws -> TestClient
  {
    let client = try TestClient(port: test.server.port, receiveBuffer: receiveBuffer)
    client.get(target)
    _ = client.read(until: "retry: 1\n\n\r\n")
    return client
  }

  private func waitUntil(_ isTrue: () -> Bool) {
    let isMet = Deadline().awaits(isTrue)
    #expect(isMet)
  }

  private func lagging(_ test: TestServer) throws -> Pair {
    let slow = try subscribed(test, receiveBuffer: 4_096)
    let quick = try subscribed(test)
    var number = 0
    // At least 10 events: the first missed one may not be the last, since the hub's two threads work in any order.
    while test.listener.misses.isEmpty || number < 10 {
      number += 1
      test.hub.post([.channel(ChannelID(1), Self.event(number))], position: UInt64(number))
      #expect(quick.readChunk()?.hasPrefix("\(number) ") == true)
    }
    return Pair(
      slow: slow, quick: quick, firstMissed: Int(test.listener.misses[0].first), lastPosted: number)
  }

  /// Reads what was queued before the first event that is missed.
  private func readQueued(_ pair: Pair) {
    for number in 1..<pair.firstMissed { #expect(pair.slow.readChunk()?.hasPrefix("\(number) ") == true) }
  }

  @Test func aReaderThatStopsMissesEventsAndIsGivenOneCatchUpWhileOthersGoOn() throws {
    let test = try TestServer.streaming { $0.pendingBytesPerStream = 100_000 }
    let pair = try lagging(test)
    #expect(test.hub.laggingStreams == 1 && test.hub.openStreams == 2)
    #expect(test.hub.lagDurations.snapshot.count == 0)
    #expect(test.listener.misses.map(\.id) == [StreamID(1)] && test.listener.questions.isEmpty)
    readQueued(pair)
    waitUntil { !test.listener.questions.isEmpty }
    let missed = pair.lastPosted + 1
    test.hub.post([.channel(ChannelID(1), Self.event(missed))], position: nil)
    #expect(pair.quick.readChunk()?.hasPrefix("\(missed) ") == true)
    test.hub.post(
      [
        .stream(StreamID(1), event("missed")), .channel(ChannelID(1), event("also missed")),
        .catchUp(StreamID(1), event("caught up"), isLast: true), .channel(ChannelID(1), event("next")),
      ], position: nil)
    test.hub.post([.stream(StreamID(1), event("own"))], position: nil)
    #expect(pair.slow.readChunk() == "caught up\n\n")
    #expect(pair.slow.readChunk() == "next\n\n")
    #expect(pair.slow.readChunk() == "own\n\n")
    #expect(pair.quick.readChunk() == "also missed\n\n")
    #expect(pair.quick.readChunk() == "next\n\n")
    #expect(test.listener.misses.count == 1 && test.listener.questions == [StreamID(1)])
    #expect(test.listener.history.isEmpty && test.hub.laggingStreams == 0)
    // The lag has ended, and is measured once.
    #expect(test.hub.lagDurations.snapshot.count == 1)
    // The thread updates the count after its system call.
    waitUntil { test.hub.pendingBytes == 0 }
  }

  @Test(arguments: [true, false])
  func theFirstMissedEventMayBeInTheMiddleOfABatch(isForChannel: Bool) throws {
    let events = (1...20).map { EventBytes(Array("\($0) \n\n".utf8), position: UInt64($0)) }
    // The first ten exactly fit after the prelude.
    let limit = events[..<10].reduce(0) { $0 + $1.framedCount }
    let test = try TestServer(limits: .with { $0.pendingBytesPerStream = limit }) { _, hub in
      let stream = try hub.open(prelude: EventBytes(Array("prelude\n\n".utf8)), channel: ChannelID(1))
      hub.post(
        events.map { isForChannel ? .channel(ChannelID(1), $0) : .stream(stream.id, $0) }, position: 20)
      return .stream(stream, fields: [:])
    }
    test.listener.whenCaughtUp { [hub = test.hub] id in
      hub.post([.catchUp(id, EventBytes(Array("caught up\n\n".utf8)), isLast: true)], position: nil)
    }
    let client = try test.client()
    client.get("/")
    _ = client.read(until: "\r\n\r\n")
    #expect(client.readChunk() == "prelude\n\n")
    for number in 1...10 { #expect(client.readChunk() == "\(number) \n\n") }
    #expect(client.readChunk() == "caught up\n\n")
    #expect(test.listener.misses == [.init(id: StreamID(1), first: 11)])
    test.post("after\n\n")
    #expect(client.readChunk() == "after\n\n")
  }

  @Test func theOwnerIsAskedAgainAfterEachAnswerThatIsNotTheLast() throws {
    let test = try TestServer.streaming { $0.pendingBytesPerStream = 100_000 }
    let pair = try lagging(test)
    // More than the limit, nothing, and the rest. The events posted between them are missed.
    let answers = Locked([event(String(repeating: "a", count: 3_000_000)), nil, event("b"), event("c")])
    test.listener.whenCaughtUp { [hub = test.hub] id in
      let (answer, isLast) = answers.withLock { ($0.removeFirst(), $0.isEmpty) }
      hub.post(
        [
          .channel(ChannelID(1), EventBytes([10, 10])), .catchUp(id, answer, isLast: isLast),
          .stream(id, EventBytes(Array("later\n\n".utf8))),
        ], position: nil)
    }
    readQueued(pair)
    #expect(pair.slow.readChunk()?.utf8.count == 3_000_002)
    for text in ["b", "c", "later"] { #expect(pair.slow.readChunk() == text + "\n\n") }
    for _ in 0..<4 { #expect(pair.quick.readChunk() == "\n\n") }
    #expect(test.listener.questions == Array(repeating: StreamID(1), count: 4))
    #expect(test.hub.laggingStreams == 0 && test.listener.misses.count == 1)
  }

  @Test func aCatchUpThatNobodyAskedForIsLeftOut() throws {
    let test = try TestServer.streaming()
    let client = try subscribed(test)
    test.hub.post(
      [
        .catchUp(StreamID(1), event("unasked"), isLast: true), .catchUp(StreamID(9), event("unknown"), isLast: false),
        .channel(ChannelID(1), event("next")),
      ], position: nil)
    #expect(client.readChunk() == "next\n\n")
    #expect(test.hub.laggingStreams == 0)
  }

  @Test(arguments: [true, false])
  func aLaggingStreamThatItsOwnerEndsGetsTheLastEventBehindWhatIsQueued(isByChannel: Bool) async throws {
    let test = try TestServer.streaming { $0.pendingBytesPerStream = 100_000 }
    let pair = try lagging(test)
    let last = event("last")
    test.hub.post([isByChannel ? .endChannel(ChannelID(1), last) : .endStream(StreamID(1), last)], position: nil)
    waitUntil { test.hub.laggingStreams == 0 }
    test.hub.post([.catchUp(StreamID(1), event("too late"), isLast: true)], position: nil)
    readQueued(pair)
    #expect(pair.slow.readChunk() == "last\n\n")
    #expect(pair.slow.readChunk() == "" && pair.slow.readToEnd() == "")
    _ = await test.listener.next(isByChannel ? 2 : 1)
    #expect(test.listener.history.contains(.init(id: StreamID(1), end: .ended)))
    #expect(test.listener.questions.isEmpty)
  }

  @Test func drainingEndsALaggingStreamLikeAnyOther() async throws {
    let test = try TestServer.streaming { $0.pendingBytesPerStream = 100_000 }
    let pair = try lagging(test)
    let drain = SystemThread { [hub = test.hub] in hub.drain(until: .now + Deadline.patience) }
    #expect(pair.quick.readChunk() == "event: bye\ndata: shutdown\n\n")
    waitUntil { test.hub.laggingStreams == 0 }
    readQueued(pair)
    #expect(pair.slow.readChunk() == "event: bye\ndata: shutdown\n\n")
    #expect(pair.slow.readChunk() == "")
    drain?.join()
    #expect(await test.listener.next(2) == [.shutdown, .shutdown])
    #expect(test.listener.questions.isEmpty && test.hub.pendingBytes == 0)
  }

  @Test func aLaggingStreamHasNoHeartbeatsButALifetime() async throws {
    let test = try TestServer.streaming {
      $0.pendingBytesPerStream = 100_000
      $0.heartbeatSeconds = 1
      $0.lifetimeSeconds = 6
    }
    let pair = try lagging(test)
    readQueued(pair)
    // No catch-up is sent to it.
    #expect(pair.slow.readChunk() == "event: bye\ndata: lifetime\n\n")
    #expect(pair.slow.readChunk() == "")
    #expect(pair.quick.readToEnd().contains("event: heartbeat"))
    #expect(await test.listener.next(2) == [.lifetime, .lifetime])
    #expect(test.hub.laggingStreams == 0 && test.listener.questions == [StreamID(1)])
  }

  @Test func aLaggingStreamWhoseClientLeavesIsNoLongerCounted() async throws {
    let test = try TestServer.streaming { $0.pendingBytesPerStream = 100_000 }
    do { _ = try lagging(test) }
    #expect(await test.listener.next(2) == [.clientGone, .clientGone])
    #expect(test.hub.laggingStreams == 0 && test.hub.pendingBytes == 0 && test.listener.questions.isEmpty)
  }

  @Test func stoppingTheHubForgetsLaggingStreams() throws {
    let test = try TestServer.streaming { $0.pendingBytesPerStream = 100_000 }
    let pair = try lagging(test)
    test.hub.stop()
    #expect(test.hub.laggingStreams == 0 && test.hub.openStreams == 0)
    withExtendedLifetime(pair) {}
  }

  @Test func aLaggingReaderThatTakesNothingIsCut() async throws {
    let test = try TestServer.streaming {
      $0.pendingBytesPerStream = 100_000
      $0.stallSeconds = 1
    }
    let pair = try lagging(test)
    #expect(await test.listener.next(1) == [.stalled])
    #expect(test.hub.laggingStreams == 0 && test.hub.openStreams == 1)
    withExtendedLifetime(pair) {}
  }

  @Test func aStreamWhoseEventsAreLostOnTheirWayIsAskedForAtOnce() async throws {
    let test = try TestServer.streaming {
      $0.threads = 1
      $0.pendingBytesPerStream = 1 << 30
    }
    let member = try subscribed(test)
    let alone = try subscribed(test, "/own")
    // The thread is blocked while more events are posted than its inbox may hold.
    let isHeld = Locked(false)
    let mayGoOn = Locked(false)
    test.listener.whenEnded { id in
      guard id == StreamID(3) else { return }
      isHeld.withLock { $0 = true }
      _ = Deadline().awaits { mayGoOn.withLock { $0 } }
    }
    do { _ = try subscribed(test, "/own") }
    waitUntil { isHeld.withLock { $0 } }
    let padding = String(repeating: "x", count: 1 << 20)
    for number in 1...80 {
      test.hub.post([.channel(ChannelID(1), event("\(number) \(padding)", position: UInt64(number)))], position: nil)
    }
    test.hub.post([.stream(StreamID(2), event("lost", position: 81))], position: 81)
    test.listener.whenCaughtUp { [hub = test.hub] id in
      hub.post([.catchUp(id, EventBytes(Array("caught up\n\n".utf8)), isLast: true)], position: nil)
    }
    mayGoOn.withLock { $0 = true }
    #expect(alone.readChunk() == "caught up\n\n")
    var number = 1
    var chunk = member.readChunk()
    while let text = chunk, text.hasPrefix("\(number) ") {
      number += 1
      chunk = member.readChunk()
    }
    #expect(chunk == "caught up\n\n")
    #expect(number > 60 && number <= 80)
    let expected: [HubListener.Miss] = [
      .init(id: StreamID(1), first: UInt64(number)), .init(id: StreamID(2), first: 81),
    ]
    #expect(test.listener.misses == expected)
    waitUntil { test.hub.settledPosition == 81 }
    #expect(test.hub.laggingStreams == 0)
  }
}
