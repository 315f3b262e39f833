import HTTPTypes
import Support
import TestKit
import Testing

@testable import HTTPServer

/// Bodies and responses in the memory ledger, over real sockets.
@Suite struct MemoryTests {
  /// A server whose only client is the loopback address, which may hold 20,000 bytes: `GET /count` answers with so many
  /// bytes; every other method is carried out later, on another thread's `carryOut`, and answered with the body.
  private static func server(_ ledger: MemoryLedger) throws -> TestServer {
    try TestServer(limits: .with { $0.bodyBytes = 100_000 }, ledger: ledger) { request, _ in
      if request.method == .get {
        let count = Int(request.target.dropFirst()) ?? 0
        return .response(Response(status: .ok, body: [UInt8](repeating: 97, count: count)))
      }
      let body = request.body()
      if request.target == "/hold" { try request.hold(50_000) }
      return .deferred { $0.respond(Response(status: .ok, fields: [.contentType: "text/plain"], body: body)) }
    }
  }

  private static func ledger() -> MemoryLedger { MemoryLedger(limit: 30_000, clientLimit: 20_000) }

  private func waits(for condition: () -> Bool) {
    let isMet = Deadline().awaits(condition)
    #expect(isMet)
  }

  @Test func anAnnouncedBodyIsCountedBeforeItComes() throws {
    let ledger = Self.ledger()
    let server = try Self.server(ledger)
    let first = try server.client()
    first.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 15000\r\n\r\n")
    waits { ledger.bytes(for: .requestBodies) == 15_000 }
    #expect(ledger.bytes(for: .requestBodies) == 15_000)
    let second = try server.client()
    second.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 6000\r\n\r\n")
    #expect(second.readResponse().head.hasPrefix("HTTP/1.1 503 "))
    let small = try server.client()
    small.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
    #expect(small.readResponse().body == "hi")
    first.send(String(repeating: "b", count: 15_000))
    #expect(first.readResponse().body.count == 15_000)
    waits { ledger.total == 0 }
    #expect(ledger.total == 0)
    #expect(ledger.refusals(for: .clientShare) == 1)
  }

  @Test func chunksAreCountedAsTheyComeAndTheRestIsReadAway() throws {
    let ledger = Self.ledger()
    let server = try Self.server(ledger)
    let client = try server.client()
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in 0..<30 { client.send("3e8\r\n\(String(repeating: "c", count: 1000))\r\n") }
    client.send("0\r\n\r\n")
    #expect(client.readResponse().head.hasPrefix("HTTP/1.1 503 "))
    #expect(ledger.total == 0)
    client.get("/5")
    #expect(client.readResponse().body == "aaaaa")
  }

  @Test func aResponseIsCountedUntilItsClientHasReadIt() throws {
    let ledger = MemoryLedger(limit: 30_000_000, clientLimit: 20_000_000)
    let server = try Self.server(ledger)
    let slow = try TestClient(port: server.server.port, receiveBuffer: 4096)
    slow.get("/15000000")
    waits { ledger.bytes(for: .responses) > 0 }
    #expect(ledger.bytes(for: .responses) >= 15_000_000)
    let other = try server.client()
    other.get("/15000000")
    #expect(other.readResponse().head.hasPrefix("HTTP/1.1 503 "))
    other.get("/4000")
    #expect(other.readResponse().body.count == 4_000)
    #expect(slow.readResponse().body.count == 15_000_000)
    waits { ledger.total == 0 }
    other.get("/15000000")
    #expect(other.readResponse().body.count == 15_000_000)
  }

  @Test func aClientThatLeavesGivesItsMemoryBack() throws {
    let ledger = MemoryLedger(limit: 30_000_000, clientLimit: 20_000_000)
    let server = try Self.server(ledger)
    do {
      let slow = try TestClient(port: server.server.port, receiveBuffer: 4096)
      slow.get("/15000000")
      let unfinished = try server.client()
      unfinished.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n")
      waits { ledger.bytes(for: .responses) > 0 && ledger.bytes(for: .requestBodies) > 0 }
    }
    waits { ledger.total == 0 }
    #expect(ledger.total == 0)
  }

  @Test func aRequestThatWasCarriedOutIsNotAnsweredWithARefusal() throws {
    let ledger = MemoryLedger(limit: 200_000, clientLimit: 100_000)
    let server = try TestServer(limits: .with { $0.bodyBytes = 50_000 }, ledger: ledger) { request, _ in
      let status: HTTPResponse.Status = request.method == .get ? .ok : .created
      let response = Response(status: status, body: [UInt8](repeating: 97, count: 110_000))
      return .deferred { $0.respond(response) }
    }
    let client = try server.client()
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
    let (head, body) = client.readResponse()
    #expect(head.hasPrefix("HTTP/1.1 201 "))
    #expect(body.isEmpty)
    client.get("/")
    #expect(client.readResponse().head.hasPrefix("HTTP/1.1 503 "))
  }

  @Test func whatIsMadeOfABodyCountsUntilTheAnswer() throws {
    let ledger = Self.ledger()
    let server = try Self.server(ledger)
    let client = try server.client()
    client.send("PUT /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
    // The handler of these tests answers with 503 if it fails.
    #expect(client.readResponse().head.hasPrefix("HTTP/1.1 503 "))
    #expect(ledger.refusals(for: .clientShare) == 1)
    #expect(ledger.total == 0)
  }
}
