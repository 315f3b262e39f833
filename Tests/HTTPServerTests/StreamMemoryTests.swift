import HTTPTypes
import TestKit
import Testing

@testable import HTTPServer

/// Pending events are reserved in the memory ledger, for the client that reads them.
@Suite(.timeLimit(.minutes(60))) struct StreamMemoryTests {
  private static let share = 400_000

  private func server(_ ledger: MemoryLedger) throws -> TestServer {
    try TestServer(
      limits: .with { $0.pendingBytesPerStream = 1 << 30 }, ledger: ledger
    ) { request, hub in
      .stream(
        try hub.open(
          for: request.client, prelude: EventBytes(Array("retry: 1\n\n".utf8)), channel: ChannelID(1)),
        fields: [.contentType: "text/event-stream"])
    }
  }

  @Test func aStreamThatWouldBeginWithMoreThanItsClientMayHoldIsNotOpened() throws {
    let ledger = MemoryLedger(limit: .max, clientLimit: Self.share)
    let test = try server(ledger)
    let prelude = EventBytes([UInt8](repeating: 97, count: 300_000))
    let (greedy, modest) = (ClientAddress(number: 1), ClientAddress(number: 2))
    let stream = try test.hub.open(for: greedy, prelude: prelude, channel: nil)
    #expect(ledger.bytes(for: .replays) >= 300_000)
    #expect(throws: StreamHubError.noMemory) { try test.hub.open(for: greedy, prelude: prelude, channel: nil) }
    #expect(test.hub.openStreams == 1)
    let other = try test.hub.open(for: modest, prelude: prelude, channel: nil)
    for stream in [stream, other] { test.hub.abandon(stream) }
  }

  @Test func aReaderThatDoesNotReadLagsAtItsClientsShareAndGivesTheMemoryBack() async throws {
    let ledger = MemoryLedger(limit: .max, clientLimit: Self.share)
    let test = try server(ledger)
    var client: TestClient? = try test.client()
    client?.get("/")
    #expect(await Deadline().comes { test.hub.openStreams == 1 })
    let event = EventBytes([UInt8](repeating: 97, count: 60_000), position: 7)
    // More than the kernel buffers, and then more than the client's share.
    var posted = 0
    while test.listener.misses.isEmpty, posted < 2_000 {
      test.hub.post([.channel(ChannelID(1), event)], position: nil)
      posted += 1
      await Task.yield()
    }
    #expect(test.listener.misses.map(\.first) == [7])
    #expect(ledger.total <= Self.share && ledger.bytes(for: .pendingEvents) > 0)
    // The client disconnects.
    client = nil
    #expect(await test.listener.next(1) == [.clientGone])
    #expect(ledger.total == 0)
  }
}
