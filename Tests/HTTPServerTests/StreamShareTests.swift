import Glibc
import Testing

@testable import HTTPServer

/// The streams of one client are counted apart from those of all.
@Suite struct StreamShareTests {
  @Test func aClientTakesItsShareOfTheStreamsAndNoOtherIsRefused() async throws {
    let test = try TestServer(
      limits: .with {
        $0.streams = 4
        $0.streamsPerAddress = 3
        // No stream becomes the response to a request; a long request timeout keeps them from ending for that.
        $0.requestSeconds = 3_600
      })
    let (greedy, modest) = (ClientAddress(number: 1), ClientAddress(number: 2))
    func open(_ client: ClientAddress) throws(StreamHubError) -> EventStream {
      try test.hub.open(for: client, prelude: EventBytes([]), channel: nil)
    }
    let first = try open(greedy)
    _ = try open(greedy)
    _ = try open(greedy)
    #expect(throws: StreamHubError.tooManyStreamsOfClient) { try open(greedy) }
    _ = try open(modest)
    #expect(test.hub.openStreams == 4)
    // The server is full: this refusal is a different one, and takes nothing from any client's share.
    #expect(throws: StreamHubError.tooManyStreams) { try open(ClientAddress(number: 3)) }
    test.hub.abandon(first)
    #expect(await test.listener.next(1) == [.clientGone])
    _ = try open(greedy)
    #expect(throws: StreamHubError.tooManyStreamsOfClient) { try open(greedy) }
  }

  @Test func twoClientsThatTakeAllTheyGetLeaveStreamsToOthers() throws {
    let test = try TestServer(
      limits: .with {
        $0.streams = 160
        $0.streamsPerAddress = 140
        $0.requestSeconds = 3_600
      })
    func fill(_ client: ClientAddress) -> Int {
      var count = 0
      while (try? test.hub.open(for: client, prelude: EventBytes([]), channel: nil)) != nil { count += 1 }
      return count
    }
    #expect(fill(ClientAddress(number: 1)) == 140)
    #expect(fill(ClientAddress(number: 2)) < 10)
    for newcomer in 3..<10 { #expect(fill(ClientAddress(number: UInt8(newcomer))) > 0) }
    #expect(test.hub.openStreams < 160)
  }
}

extension ClientAddress {
  /// Creates an address that differs for each number.
  init(number: UInt8) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(127) | UInt32(number) << 24
    self = withUnsafeBytes(of: &address) { ClientAddress($0.bindMemory(to: sockaddr.self).baseAddress) }
  }
}
