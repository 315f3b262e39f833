import HTTPTypes
import Support
import TestKit
import Testing

@testable import HTTPServer

/// The amount of traffic that the connection threads move for an address while others are served.
@Suite(.serialized, .timeLimit(.minutes(60))) struct TrafficTests {
  @Test func whatIsOverTheAllowanceCountsInTheNextTicks() {
    let share = TrafficShare(bytesPerSecond: 100_000)
    #expect(share.rest(now: 1_000) == 1_000)
    share.count(3_500)
    #expect(share.rest(now: 1_005) == -2_500)
    #expect(share.rest(now: 1_010) == -1_500)
    #expect(share.rest(now: 1_030) == 500)
    // Nothing is saved up.
    #expect(share.rest(now: 9_000) == 1_000)
  }

  @Test func aShareOfTimeHasShorterTicks() {
    // Half of the time of two threads: one of two milliseconds on each.
    let share = TrafficShare(nanosecondsPerSecond: 1_000_000_000)
    #expect(share.rest(now: 10_000_000) == 2_000_000)
    share.count(3_000_000)
    #expect(share.rest(now: 11_999_999) == -1_000_000)
    #expect(share.rest(now: 12_000_000) == 1_000_000)
  }

  @Test func aQuotaIsOfATick() {
    let quota = TickQuota(perSecond: 200)
    #expect(quota.left(now: 1_000) == 2)
    quota.take(now: 1_000)
    quota.take(now: 1_009)
    #expect(quota.left(now: 1_009) == 0)
    quota.take(now: 1_009)
    // The excess takes nothing from the next tick, and nothing is saved up.
    #expect(quota.left(now: 1_010) == 2)
    #expect(quota.left(now: 9_000) == 2)
  }

  @Test func aQuotaOfManyHasShortTicks() {
    let quota = TickQuota(perSecond: 1_500)
    for _ in 0..<3 {
      #expect(quota.left(now: 1_000) > 0)
      quota.take(now: 1_000)
    }
    #expect(quota.left(now: 1_001) == 0)
    #expect(quota.left(now: 1_002) == 3)
  }

  /// Connections begin in slices of two, or of three in a longer tick beside further requests. With one address, its
  /// share is used up at once.
  @Test(arguments: [1, 2]) func aCrowdOfNewConnectionsIsServedWholeWhileOthersGoOn(addresses: Int) throws {
    let limits = ServerLimits.with {
      $0.beginningsPerSecond = 1_200
      if addresses == 1 { $0.bytesPerSecond = 1 }
    }
    let server = try TestServer(limits: limits) { _, _ in .response(Response(status: .ok, body: Array("here".utf8))) }
    let port = server.server.port
    let old = try WireConnection(SocketAddress(port: port))
    #expect(try old.exchange(WireRequest("GET", "/")).status == 200)
    let crowd = try (0..<200).map {
      try WireConnection(SocketAddress(port: port, from: "127.0.0.\(1 + $0 % addresses)"))
    }
    // All send before the first response is read. In the second round their connections have begun.
    for _ in 0..<2 {
      for connection in crowd { try connection.send(WireRequest("GET", "/")) }
      #expect(try old.exchange(WireRequest("GET", "/")).status == 200)
      for connection in crowd {
        let response = try connection.response()
        #expect(response.status == 200 && response.text == "here")
      }
    }
  }

  @Test func anAddressThatIsAloneIsNeverHeldUp() throws {
    let bodies = Locked(0)
    let server = try TestServer(limits: .with { $0.bytesPerSecond = 1 }) { request, _ in
      bodies.withLock { $0 += request.body().count }
      return .response(Response(status: .ok))
    }
    let connection = try WireConnection(SocketAddress(port: server.server.port))
    let body = String(repeating: "x", count: 1_000_000)
    for _ in 0..<4 {
      let response = try connection.exchange(WireRequest("POST", "/", body: body))
      #expect(response.status == 200)
    }
    #expect(bodies.withLock { $0 } == 4_000_000)
  }

  @Test func oneThatHadItsShareIsServedLaterAndWhole() throws {
    let limits = ServerLimits.with { $0.bytesPerSecond = 8_000_000 }
    let server = try TestServer(limits: limits) { request, _ in
      .response(Response(status: .ok, body: request.body().isEmpty ? [] : Array("\(request.body().count)".utf8)))
    }
    let port = server.server.port
    // Two addresses alternate, so that neither is ever alone.
    let small = try WireConnection(SocketAddress(port: port))
    let large = try (0..<8).map { _ in try WireConnection(SocketAddress(port: port, from: "127.0.0.2")) }
    let body = String(repeating: "x", count: 1_000_000)
    for _ in 0..<2 {
      for connection in large {
        let other = try small.exchange(WireRequest("GET", "/"))
        #expect(other.status == 200)
        let response = try connection.exchange(WireRequest("POST", "/", body: body))
        #expect(response.status == 200 && response.text == "1000000")
      }
    }
  }
}
