import HTTPTypes
import Support
import Testing

@testable import HTTPServer

/// Streams of a channel that counts for itself, and streams that are behind when they are opened.
@Suite(.serialized, .timeLimit(.minutes(60))) struct BeginningTests {
  private func event(_ text: String, position: UInt64) -> EventBytes {
    EventBytes(Array("\(text)\n\n".utf8), position: position)
  }

  private func server(_ beginning: StreamBeginning) throws -> TestServer {
    try TestServer(limits: .with { $0.heartbeatSeconds = 1 }) { _, hub in
      let stream = try hub.open(
        prelude: EventBytes(Array("prelude\n\n".utf8)), channel: ChannelID(1), beginning: beginning)
      return .stream(stream, fields: [:])
    }
  }

  private func opened(_ test: TestServer) throws -> TestClient {
    let client = try test.client()
    client.get("/")
    _ = client.read(until: "\r\n\r\n")
    #expect(client.readChunk() == "prelude\n\n")
    return client
  }

  @Test func heartbeatsOfAChannelThatCountsForItselfNameItsOwnLastEvent() throws {
    let test = try server(.position(4))
    let client = try opened(test)
    test.hub.post([], position: 9)
    #expect(client.readChunk() == "event: heartbeat\nid: 4\n\n")
    test.hub.post([.channel(ChannelID(1), event("six", position: 6))], position: 9)
    #expect(client.readChunk() == "six\n\n")
    #expect(client.readChunk() == "event: heartbeat\nid: 6\n\n")
  }

  @Test func aStreamThatIsBehindIsAskedForOnceItsPreludeIsSentAndMissesWhatIsPosted() throws {
    let begin = ContinuousClock.now
    let test = try server(.behind)
    test.listener.whenCaughtUp { [hub = test.hub] id in
      let isFirst = hub.laggingStreams == 1
      hub.post(
        [
          .channel(ChannelID(1), EventBytes(Array("missed\n\n".utf8), position: 3)),
          .catchUp(id, EventBytes(Array("caught up\n\n".utf8), position: 7), isLast: true),
          .channel(ChannelID(1), EventBytes(Array("next\n\n".utf8), position: 8)),
        ], position: 20)
      #expect(isFirst)
    }
    let client = try opened(test)
    #expect(client.readChunk() == "caught up\n\n")
    #expect(client.readChunk() == "next\n\n")
    #expect(client.readChunk() == "event: heartbeat\nid: 8\n\n")
    #expect(test.listener.questions.count == 1 && test.listener.misses.isEmpty)
    #expect(test.hub.laggingStreams == 0)
    // The lag began when the stream was opened, and not when the machine was started.
    let lags = test.hub.lagDurations.snapshot
    #expect(lags.count == 1 && Duration.nanoseconds(lags.sum) <= ContinuousClock.now - begin + .seconds(1))
  }

  @Test func aCatchUpWithoutBytesSaysHowFarTheStreamHasBeenTold() throws {
    let test = try server(.behind)
    test.listener.whenCaughtUp { [hub = test.hub] id in
      hub.post([.catchUp(id, EventBytes([], position: 7), isLast: true)], position: 20)
    }
    let client = try opened(test)
    #expect(client.readChunk() == "event: heartbeat\nid: 7\n\n")
  }
}
