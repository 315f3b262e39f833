import HTTPTypes
import Support
import TestKit
import Testing

@testable import HTTPServer

/// Each of these tests would hang until its time limit if a drain did not end by itself.
@Suite(.serialized, .timeLimit(.minutes(60))) struct DrainTests {
  /// More bytes than the kernel buffers for one socket.
  private static let large = [UInt8](repeating: 120, count: 12_000_000)

  @Test func aStreamThatDoesNotTakeItsFarewellIsCutAtTheDeadlineAndTheOthersEndAtOnce() async throws {
    let test = try TestServer.streaming { $0.pendingBytesPerStream = 100_000_000 }
    let slow = try TestClient(port: test.server.port, receiveBuffer: 4_096)
    slow.get("/own")
    _ = slow.read(until: "retry: 1\n\n\r\n")
    let quick = try test.client()
    quick.get("/")
    _ = quick.read(until: "retry: 1\n\n\r\n")
    test.hub.post([.stream(StreamID(1), EventBytes(Self.large + [10, 10]))], position: nil)
    let drain = SystemThread { [hub = test.hub] in hub.drain(until: .now + .milliseconds(1_500)) }
    #expect(quick.readToEnd().hasSuffix("event: bye\ndata: shutdown\n\n\r\n0\r\n\r\n"))
    #expect(await test.listener.next(1) == [.shutdown])
    drain?.join()
    #expect(test.hub.openStreams == 0 && test.hub.pendingBytes == 0)
    #expect(test.listener.history.map(\.end) == [.shutdown, .shutdown])
    #expect(!slow.readToEnd().contains("bye") && slow.isAtEnd)
  }

  @Test func drainingEndsWithinItsTimeThoughAReaderDoesNotRead() throws {
    let test = try TestServer.streaming { $0.pendingBytesPerStream = 100_000_000 }
    let clients = try (0..<5).map { _ in try TestClient(port: test.server.port, receiveBuffer: 4_096) }
    for client in clients {
      client.get("/")
      _ = client.read(until: "retry: 1\n\n\r\n")
    }
    test.hub.post([.channel(ChannelID(1), EventBytes(Self.large + [10, 10]))], position: nil)
    test.hub.drain(until: .now + .milliseconds(500))
    // On a busy machine the hub's threads may end the streams a moment after the drain has stopped waiting for them.
    #expect(Deadline().awaits { test.hub.openStreams == 0 })
    withExtendedLifetime(clients) {}
  }

  @Test func aResponseThatIsNotTakenIsCutAtTheDeadline() throws {
    let test = try TestServer { _, _ in .response(Response(status: .ok, body: Self.large)) }
    let client = try TestClient(port: test.server.port, receiveBuffer: 4_096)
    client.get("/")
    _ = client.read(until: "\r\n\r\n")
    test.server.stop(until: .now + .milliseconds(500))
    #expect(test.server.openConnections == 0)
    #expect(client.readToEnd().utf8.count < Self.large.count && client.isAtEnd)
  }

  @Test func aResponseThatIsTakenWithinTheTimeArrivesWhole() throws {
    let test = try TestServer { _, _ in .response(Response(status: .ok, body: Self.large)) }
    let client = try TestClient(port: test.server.port, receiveBuffer: 4_096)
    client.get("/")
    _ = client.read(until: "\r\n\r\n")
    let stop = SystemThread { [server = test.server] in server.stop(until: .now + Deadline.patience) }
    #expect(client.readToEnd().utf8.count == Self.large.count)
    stop?.join()
  }

  @Test func aDeferredAnswerThatDoesNotComeIsReplacedShortlyBeforeTheDeadline() throws {
    let held = Locked([Completion]())
    let test = try TestServer { _, _ in
      .deferred { completion in held.withLock { $0.append(completion) } }
    }
    let clients = try (0..<5).map { _ in try test.client() }
    for client in clients { client.get("/") }
    #expect(Deadline().awaits { held.withLock { $0.count == clients.count } })
    test.server.stop(until: .now + .milliseconds(500))
    for client in clients {
      let response = client.readResponse()
      #expect(response.head.hasPrefix("HTTP/1.1 503 ") && response.body == "draining")
      #expect(client.readToEnd() == "" && client.isAtEnd)
    }
    // Too late, and harmless.
    for completion in held.withLock({ $0 }) { completion.respond(Response(status: .ok)) }
  }

  @Test func stoppingAmongDeferredRequestsLeavesNoConnectionSuspended() throws {
    for _ in 0..<20 {
      let held = Locked([Completion]())
      let test = try TestServer { _, _ in
        .deferred { completion in held.withLock { $0.append(completion) } }
      }
      let clients = try (0..<20).map { _ in try test.client() }
      for client in clients { client.get("/") }
      // Some are suspended by now, some are about to be. libmicrohttpd aborts the program if one stays suspended.
      test.server.stop(until: .now)
      #expect(test.server.openConnections == 0)
    }
  }

  @Test func stoppingWithNothingUnderWayIsImmediate() throws {
    let test = try TestServer()
    let idle = try test.client()
    idle.get("/")
    _ = idle.readResponse()
    let deadline = ContinuousClock.now + Deadline.patience
    test.hub.drain(until: deadline)
    test.server.stop(until: deadline)
    #expect(ContinuousClock.now < deadline, "nothing was waited for")
    #expect(idle.readToEnd() == "" && idle.isAtEnd)
  }
}
