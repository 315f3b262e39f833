import Glibc
import HTTPTypes
import Support
import Synchronization
import TestKit
import Testing

@testable import HTTPServer

/// The order in which the server begins to serve connections.
@Suite(.serialized, .timeLimit(.minutes(60))) struct ArrivalTests {
  private let limiter = ConnectionLimiter(.with { $0.connections = 800 })

  private func connection(_ descriptor: Int32, from client: String) throws -> AcceptedConnection {
    let address = try #require(ClientAddress(client))
    return AcceptedConnection(
      descriptor: descriptor, slot: try #require(limiter.admit(address)), peer: sockaddr_storage(), peerLength: 0)
  }

  @Test func addressesTakeTurns() throws {
    let arrivals = ConnectionArrivals(startingAtOnce: 4)
    for descriptor in Int32(100)..<110 { arrivals.add(try connection(descriptor, from: "192.0.2.1")) }
    for descriptor in Int32(200)..<203 { arrivals.add(try connection(descriptor, from: "192.0.2.2")) }
    var order: [Int32] = []
    while let next = arrivals.next(isAllowed: { _ in true }) {
      order.append(next.descriptor)
      #expect(arrivals.begun(next.descriptor)?.address == next.slot.address)
    }
    #expect(order == [100, 200, 101, 201, 102, 202, 103, 104, 105, 106, 107, 108, 109])
    #expect(arrivals.isEmpty)
  }

  @Test func noMoreAreStartingThanMay() throws {
    let arrivals = ConnectionArrivals(startingAtOnce: 4)
    for descriptor in Int32(100)..<110 { arrivals.add(try connection(descriptor, from: "192.0.2.1")) }
    // One place is left for another address.
    for _ in 0..<3 { #expect(arrivals.next { _ in true } != nil) }
    #expect(arrivals.next { _ in true } == nil)
    arrivals.add(try connection(200, from: "192.0.2.2"))
    #expect(arrivals.next { _ in true }?.descriptor == 200)
    #expect(arrivals.begun(999) == nil)
    #expect(arrivals.next { _ in true } == nil)
    #expect(arrivals.begun(200) != nil)
    #expect(arrivals.begun(100) != nil)
    #expect(arrivals.next { _ in true }?.descriptor == 103)
  }

  @Test func onesThatAreNotAllowedMissTheirTurns() throws {
    let arrivals = ConnectionArrivals(startingAtOnce: 4)
    arrivals.add(try connection(100, from: "192.0.2.1"))
    arrivals.add(try connection(200, from: "192.0.2.2"))
    let second = try #require(ClientAddress("192.0.2.2"))
    #expect(arrivals.next { $0.address == second }?.descriptor == 200)
    #expect(arrivals.next { $0.address == second } == nil)
    #expect(!arrivals.isEmpty)
    #expect(arrivals.next { _ in true }?.descriptor == 100)
  }

  @Test func whatAThreadHasLostCountsNoMore() throws {
    let arrivals = ConnectionArrivals(startingAtOnce: 2)
    for _ in 0..<20 {
      // A new connection has the descriptor of one that was closed before it began.
      arrivals.add(try connection(100, from: "192.0.2.1"))
      #expect(arrivals.next { _ in true } != nil)
    }
    #expect(limiter.count == 1)
    #expect(arrivals.begun(100) != nil)
    #expect(limiter.count == 0)
  }

  @Test func nothingIsGivenOnceClosed() throws {
    let arrivals = ConnectionArrivals(startingAtOnce: 2)
    for descriptor in Int32(100)..<103 { arrivals.add(try connection(descriptor, from: "192.0.2.1")) }
    #expect(arrivals.close().map(\.descriptor) == [100, 101, 102])
    #expect(limiter.count == 0)
    arrivals.add(try connection(100, from: "192.0.2.1"))
    #expect(arrivals.next { _ in true } == nil)
  }

  @Test("A connection is served before most of those that another client has opened before")
  func overtaking() throws {
    let isBusy = Atomic<Bool>(false)
    let isHeld = Atomic<Bool>(true)
    let order = Locked<[ClientAddress]>([])
    let server = try TestServer(limits: .with { $0.threads = 1 }) { request, _ in
      isBusy.store(true, ordering: .relaxed)
      _ = Deadline().awaits { !isHeld.load(ordering: .relaxed) }
      order.withLock { $0.append(request.client) }
      return .response(Response(status: .ok))
    }
    let port = server.server.port
    let request = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
    var many: [WireSocket] = []
    for _ in 0..<300 {
      let socket = try WireSocket(SocketAddress(port: port, from: "127.0.0.2"))
      try socket.send(request, before: Deadline())
      many.append(socket)
      // From the first request on, the thread does nothing else.
      #expect(Deadline().awaits { isBusy.load(ordering: .relaxed) })
    }
    #expect(Deadline().awaits { server.server.openConnections == many.count })
    let one = try WireSocket(SocketAddress(port: port))
    try one.send(request, before: Deadline())
    #expect(Deadline().awaits { server.server.openConnections == many.count + 1 })
    isHeld.store(false, ordering: .relaxed)
    #expect(Deadline().awaits { order.withLock { $0.count } == many.count + 1 })
    let place = order.withLock { $0.firstIndex(of: ClientAddress("127.0.0.1") ?? .unknown) }
    // The connections that its thread already had come first.
    #expect((place ?? .max) < 3 * Acceptor.startingCount(threads: 1), "\(place ?? -1)")
  }
}
