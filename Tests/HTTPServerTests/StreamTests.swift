import HTTPTypes
import TestKit
import Testing

@testable import HTTPServer

@Suite(.serialized, .timeLimit(.minutes(60))) struct StreamTests {
  @Test func aStreamBeginsWithItsHeadAndPrelude() throws {
    let test = try TestServer.streaming()
    let client = try test.client()
    client.get("/")
    let head = client.read(until: "\r\n\r\n")
    #expect(head.hasPrefix("HTTP/1.1 200 OK\r\nDate: "))
    #expect(head.contains("\r\nTransfer-Encoding: chunked\r\n"))
    #expect(head.contains("\r\nContent-Type: text/event-stream\r\n"))
    #expect(client.read(until: "\n\n\r\n") == "a\r\nretry: 1\n\n\r\n")
    #expect(test.hub.openStreams == 1 && test.server.openConnections == 1)
  }

  @Test func anOldClientGetsEventsUnframed() throws {
    let test = try TestServer.streaming()
    let client = try test.client()
    client.send("GET / HTTP/1.0\r\n\r\n")
    let head = client.read(until: "\r\n\r\n")
    #expect(head.hasPrefix("HTTP/1.0 200 OK\r\n") && !head.contains("chunked"))
    #expect(client.read(until: "\n\n") == "retry: 1\n\n")
    test.post("data: 1\n\n", "data: 2\n\n")
    #expect(client.read(until: "2\n\n") == "data: 1\n\ndata: 2\n\n")
    test.hub.post([.endChannel(ChannelID(1), nil)], position: nil)
    #expect(client.readToEnd() == "" && client.isAtEnd)
  }

  @Test func headOfAStreamIsItsHeadersAlone() async throws {
    let test = try TestServer.streaming()
    let client = try test.client()
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
    let head = client.read(until: "\r\n\r\n")
    #expect(head.contains("Content-Type: text/event-stream"))
    // A stream has no length, and nothing follows the head.
    #expect(!head.contains("Content-Length"))
    #expect(client.readToEnd() == "" && client.isAtEnd)
    #expect(await test.listener.next(1) == [.clientGone])
  }

  @Test func postsBetweenOpeningAndTakingOverComeAfterThePreludeInOrder() throws {
    let test = try TestServer { _, hub in
      let stream = try hub.open(prelude: EventBytes(Array("p\n\n".utf8)), channel: ChannelID(1))
      hub.post(
        [.channel(ChannelID(1), EventBytes(Array("1\n\n".utf8))), .stream(stream.id, EventBytes(Array("2\n\n".utf8)))],
        position: nil)
      hub.post([.channel(ChannelID(1), EventBytes(Array("3\n\n".utf8)))], position: nil)
      return .stream(stream, fields: [:])
    }
    let client = try test.client()
    client.get("/")
    _ = client.read(until: "\r\n\r\n")
    #expect(client.read(until: "3\n\n\r\n") == ["p", "1", "2", "3"].map { "3\r\n\($0)\n\n\r\n" }.joined())
  }

  @Test func aBroadcastReachesEveryMemberOnceAndInOrder() throws {
    let test = try TestServer.streaming()
    let clients = try (0..<50).map { _ in try test.client() }
    for client in clients { client.get("/") }
    for client in clients { _ = client.read(until: "retry: 1\n\n\r\n") }
    for number in 0..<500 { test.post("data: \(number)\n\n") }
    test.post("end\n\n")
    let expected = (0..<500).map { "\(chunk("data: \($0)\n\n"))" }.joined() + chunk("end\n\n")
    for client in clients { #expect(client.read(until: "end\n\n\r\n") == expected) }
  }

  @Test func anEventForOneStreamReachesNoOther() throws {
    let test = try TestServer.streaming()
    let own = try test.client()
    own.get("/own")
    _ = own.read(until: "retry: 1\n\n\r\n")
    let other = try test.client()
    other.get("/")
    _ = other.read(until: "retry: 1\n\n\r\n")
    test.hub.post(
      [.stream(StreamID(1), EventBytes(Array("a\n\n".utf8))), .channel(ChannelID(1), EventBytes(Array("b\n\n".utf8)))],
      position: nil)
    #expect(own.read(until: "\n\n\r\n") == chunk("a\n\n"))
    #expect(other.read(until: "\n\n\r\n") == chunk("b\n\n"))
  }

  @Test func anOwnerEndsAStreamAfterOneMoreEvent() async throws {
    let test = try TestServer.streaming()
    let client = try test.client()
    client.get("/own")
    _ = client.read(until: "retry: 1\n\n\r\n")
    test.hub.post([.endStream(StreamID(1), EventBytes(Array("last\n\n".utf8)))], position: nil)
    #expect(client.readToEnd() == chunk("last\n\n") + "0\r\n\r\n")
    #expect(await test.listener.next(1) == [.ended])
    #expect(test.hub.openStreams == 0)
  }

  @Test func aClientThatLeavesEndsItsStreamOnce() async throws {
    let test = try TestServer.streaming()
    do {
      let client = try test.client()
      client.get("/")
      _ = client.read(until: "retry: 1\n\n\r\n")
    }
    #expect(await test.listener.next(1) == [.clientGone])
    test.post("data\n\n")
    test.hub.drain(until: .now + .seconds(5))
    #expect(test.listener.history.count == 1)
    #expect(Deadline().awaits { test.server.openConnections == 0 })
  }

  @Test func aStreamNeverTakenIsDropped() async throws {
    let test = try TestServer(limits: .with { $0.requestSeconds = 1 })
    let stream = try test.hub.open(prelude: EventBytes([]), channel: ChannelID(1))
    #expect(await test.listener.next(1) == [.clientGone])
    test.hub.abandon(stream)
    _ = try test.hub.open(prelude: EventBytes([]), channel: nil)
    #expect(await test.listener.next(1) == [.clientGone])
    #expect(test.hub.openStreams == 0)
  }

  @Test func moreStreamsThanAllowedAreRefused() throws {
    let test = try TestServer(limits: .with { $0.streams = 1 })
    _ = try test.hub.open(prelude: EventBytes([]), channel: nil)
    #expect(throws: StreamHubError.tooManyStreams) { try test.hub.open(prelude: EventBytes([]), channel: nil) }
  }

  private func chunk(_ text: String) -> String { String(text.utf8.count, radix: 16) + "\r\n\(text)\r\n" }
}
