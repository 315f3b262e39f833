import Glibc
import HTTPTypes
import Synchronization
import TestKit
import Testing

@testable import HTTPServer

/// The limits on connections, and the ends of connections.
@Suite(.serialized, .timeLimit(.minutes(60))) struct ConnectionTests {
  private static func address(_ last: UInt32) -> ClientAddress {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = (0x7F00_0000 | last).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { ClientAddress($0) }
    }
  }

  /// Takes connections for an address until there is no room. Returns their slots.
  private func fill(
    _ limiter: ConnectionLimiter, for address: ClientAddress, upTo limit: Int = .max
  ) -> [ConnectionSlot] {
    var slots: [ConnectionSlot] = []
    while slots.count < limit, let slot = limiter.admit(address) { slots.append(slot) }
    return slots
  }

  @Test func oneAddressTakesItsShareAndNoMore() {
    let limiter = ConnectionLimiter(
      .with {
        $0.connections = 800; $0.connectionsPerAddress = 700
      })
    let slots = fill(limiter, for: Self.address(1))
    #expect(slots.count == 700)
    #expect(limiter.admit(Self.address(2)) != nil)
  }

  @Test func whatIsReservedIsForAddressesThatHaveFew() {
    let limiter = ConnectionLimiter(
      .with {
        $0.connections = 800; $0.connectionsPerAddress = 800
      })
    let large = [1, 2, 3].map { fill(limiter, for: Self.address($0)) }
    // The second and third get only a part of the reserved connections.
    #expect(large.map(\.count) == [700, 12, 11])
    let another = ConnectionLimiter(
      .with {
        $0.connections = 800; $0.connectionsPerAddress = 800
      })
    let first = fill(another, for: Self.address(1))
    #expect(first.count == 700)
    let others = (2...101).map { another.admit(Self.address(UInt32($0))) }
    #expect(others.allSatisfy { $0 != nil } && another.count == 800)
    #expect(another.admit(Self.address(102)) == nil)
  }

  @Test(arguments: [16_384, 4_096], [1, 2, 10, 100])
  func clientsThatHoldAllTheyCanGetLeaveConnectionsToNewcomers(_ connections: Int, _ part: Int) {
    // The default, or less if the process may have fewer descriptors.
    var limits = ServerLimits()
    limits.lowerConnections(to: connections)
    let limiter = ConnectionLimiter(limits)
    // A few clients that each want all connections, or many that want a hundred each and together want all.
    let (clients, wanted) = part < 100 ? (part, connections) : (connections / part, part)
    var slots = (1...UInt32(clients)).flatMap { fill(limiter, for: Self.address($0), upTo: wanted) }
    #expect(slots.count >= connections / 8 * 7)
    // Six connections each, as many as a browser opens to a host.
    for newcomer in 1_000..<UInt32(1_016) {
      let own = fill(limiter, for: Self.address(newcomer), upTo: 6)
      #expect(own.count == 6, "newcomer \(newcomer - 999)")
      slots += own
    }
    #expect(limiter.count == slots.count)
  }

  @Test func aSmallServerReservesNoMoreThanAnEighth() {
    let limiter = ConnectionLimiter(.with { $0.connections = 16 })
    #expect(fill(limiter, for: Self.address(1)).count == 14)
    #expect(fill(ConnectionLimiter(.with { $0.connections = 1 }), for: Self.address(1)).count == 1)
  }

  @Test func fewerDescriptorsLowerTheShareOfAnAddressToo() {
    var limits = ServerLimits()
    #expect(limits.connectionsPerAddress == limits.connections / 8 * 7)
    limits.lowerConnections(to: 800)
    #expect(limits.connections == 800 && limits.connectionsPerAddress == 700)
    limits.lowerConnections(to: 1_000)
    #expect(limits.connections == 800)
  }

  @Test func anAddressThatTakesAllItCanGetLeavesRoomForAnother() throws {
    let test = try TestServer(
      host: "::",
      limits: .with {
        $0.connections = 16
      })
    var greedy: [TestClient] = []
    while greedy.count < 20 {
      let client = try test.client()
      client.get("/")
      greedy.append(client)
    }
    #expect(greedy.count { $0.readResponse().head.hasPrefix("HTTP/1.1 200") } == 14)
    let other = try TestClient(port: test.server.port, family: AF_INET6)
    other.get("/")
    #expect(other.readResponse().head.hasPrefix("HTTP/1.1 200"))
  }

  @Test func aClientThatHasFinishedIsAnsweredAndForgotten() throws {
    let isHeld = Atomic(true)
    let test = try TestServer(
      limits: .with {
        $0.threads = 1; $0.keepAliveSeconds = 3600
      }
    ) { request, _ in
      if request.target == "/wait" { _ = Deadline().awaits { !isHeld.load(ordering: .acquiring) } }
      return .response(Response(status: .ok))
    }
    let first = try test.client()
    first.get("/wait")
    // The one thread finds their requests and their ends at the same time.
    let finished = try (0..<8).map { _ in try test.client() }
    for client in finished {
      client.get("/")
      client.finish()
    }
    isHeld.store(false, ordering: .releasing)
    for client in finished { #expect(client.readResponse().head.hasPrefix("HTTP/1.1 200")) }
    #expect(first.readResponse().head.hasPrefix("HTTP/1.1 200"))
    // The server closes these connections: the clients keep their sockets open.
    #expect(Deadline().awaits { test.server.openConnections == 1 })
    for client in finished { #expect(client.readToEnd() == "" && client.isAtEnd) }
  }

  @Test func aClientThatFinishesInTheMiddleOfAHeadIsForgotten() throws {
    let test = try TestServer(limits: .with { $0.requestSeconds = 3600 })
    let client = try test.client()
    client.send("GET / HTTP/1.1\r\nHost: a\r\n")
    client.finish()
    #expect(client.readToEnd() == "" && client.isAtEnd)
    #expect(Deadline().awaits { test.server.openConnections == 0 })
  }

  @Test func aSecondRequestHasItsTimeFromItsFirstByte() throws {
    let test = try TestServer(
      limits: .with {
        $0.requestSeconds = 1; $0.keepAliveSeconds = 3600
      })
    let client = try test.client()
    client.get("/")
    #expect(client.readResponse().head.hasPrefix("HTTP/1.1 200"))
    client.send("GET / HT")
    #expect(client.readToEnd() == "" && client.isAtEnd)
  }

  @Test func aClientThatIsRefusedWhileItSendsHearsWhy() throws {
    let test = try TestServer()
    let client = try test.client()
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n")
    for _ in 0..<64 { client.send(String(repeating: "x", count: 65_536)) }
    #expect(client.readResponse().body == "malformed(Content-Length does not consist of digits only)")
    #expect(client.readToEnd() == "" && client.isAtEnd)
  }

  @Test func aRefusedHeadRequestHasAnAnswerWithoutBody() throws {
    let test = try TestServer()
    let client = try test.client()
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n")
    let answer = client.readToEnd()
    #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n") && answer.hasSuffix("\r\n\r\n"))
    #expect(answer.contains("\r\nContent-Length: ") && !answer.contains("Content-Length: 0"))
    #expect(client.isAtEnd)
  }

  @Test(arguments: [false, true]) func aClientThatLeavesItsAnswerUnreadIsForgotten(isGone: Bool) throws {
    let test = try TestServer(limits: .with { $0.keepAliveSeconds = 1 }) { _, _ in
      .response(Response(status: .ok, body: Array(repeating: 0x20, count: 32_000_000)))
    }
    var client: TestClient? = try TestClient(port: test.server.port, receiveBuffer: 4096)
    client?.get("/")
    #expect(client?.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200") == true)
    if isGone { client = nil } else { client?.finish() }
    #expect(Deadline().awaits { test.server.openConnections == 0 })
  }
}
