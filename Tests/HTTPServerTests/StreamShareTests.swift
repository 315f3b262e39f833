import Glibc
import Testing

@testable import HTTPServer

/// The streams of one client are counted apart from those of all.
@Suite struct StreamShareTests {
  @Test func aClientTakesItsShareOfTheStreamsAndNoOtherIsRefused() async throws {
    let test = try TestServer(
      limits: .with {
        $0.streams = 4
        $0.streamsPerAddress = 2
        // None of them becomes the answer to a request, and none ends for that.
        $0.requestSeconds = 3_600
      })
    let (greedy, modest) = (ClientAddress(number: 1), ClientAddress(number: 2))
    func open(_ client: ClientAddress) throws(StreamHubError) -> EventStream {
      try test.hub.open(for: client, prelude: EventBytes([]), channel: nil)
    }
    let first = try open(greedy)
    _ = try open(greedy)
    #expect(throws: StreamHubError.tooManyStreamsOfClient) { try open(greedy) }
    _ = try open(modest)
    _ = try open(modest)
    #expect(test.hub.openStreams == 4)
    // The server is full: that is another refusal, and takes nothing of anyone's share.
    #expect(throws: StreamHubError.tooManyStreams) { try open(ClientAddress(number: 3)) }
    test.hub.abandon(first)
    #expect(await test.listener.next(1) == [.clientGone])
    _ = try open(greedy)
    #expect(throws: StreamHubError.tooManyStreamsOfClient) { try open(greedy) }
  }
}

extension ClientAddress {
  /// Some address, another for each number.
  init(number: UInt8) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(127) | UInt32(number) << 24
    self = withUnsafeBytes(of: &address) { ClientAddress($0.bindMemory(to: sockaddr.self).baseAddress) }
  }
}
