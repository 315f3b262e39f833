import Foundation
import LoopbackKit
import Testing

@Suite("A proxy that can be cut in one direction")
struct OneWayProxyTests {
  /// A connection through a proxy, both ends of which are here.
  private final class Passage {
    let listener: LoopbackListener
    let proxy: OneWayProxy
    let client: WireSocket
    let server: Int32

    init() throws {
      listener = try LoopbackListener()
      proxy = try OneWayProxy(to: listener.port)
      client = try WireSocket(port: proxy.port)
      server = try #require(listener.accept())
    }

    deinit { close(server) }

    /// What the server has got after at most so long; nil where nothing came.
    func arrived(within milliseconds: Int32) -> String? {
      var entry = pollfd(fd: server, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, milliseconds) > 0 else { return nil }
      var buffer = [UInt8](repeating: 0, count: 100)
      let count = recv(server, &buffer, buffer.count, 0)
      return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
    }

    func answer(_ text: String) { _ = send(server, text, text.utf8.count, 0) }
  }

  @Test("It carries both ways, and what is sent into a cut way waits while the other goes on")
  func cutting() throws {
    for direction in OneWayProxy.Direction.allCases {
      let passage = try Passage()
      try passage.client.send("one")
      #expect(passage.arrived(within: 10_000) == "one")
      passage.proxy.cut(direction)
      try passage.client.send("two")
      passage.answer("three")
      switch direction {
      case .toTarget:
        #expect(try passage.client.receive(before: Deadline()) == Array("three".utf8))
        #expect(passage.arrived(within: 50) == nil)
        passage.proxy.mend()
        #expect(passage.arrived(within: 10_000) == "two")
      case .fromTarget:
        #expect(passage.arrived(within: 10_000) == "two")
        #expect(throws: LoopbackError.self) { try passage.client.receive(before: Deadline(seconds: 0.05)) }
        passage.proxy.mend()
        #expect(try passage.client.receive(before: Deadline()) == Array("three".utf8))
      }
    }
  }

  @Test("The answer to one request is lost, which has come through, and its connection is broken off or falls silent")
  func losing() throws {
    for ending in OneWayProxy.Ending.allCases {
      let passage = try Passage()
      passage.proxy.loseAnswer(to: "lose", ending)
      try passage.client.send("one")
      #expect(passage.arrived(within: 10_000) == "one")
      passage.answer("two")
      #expect(try passage.client.receive(before: Deadline()) == Array("two".utf8))
      #expect(passage.proxy.lostAnswers == 0)
      try passage.client.send("please lose me")
      #expect(passage.arrived(within: 10_000) == "please lose me")
      passage.answer("three")
      switch ending {
      case .reset: #expect((try? passage.client.receive(before: Deadline())) ?? [] == [])
      case .silence:
        #expect(throws: LoopbackError.self) { try passage.client.receive(before: Deadline(seconds: 0.05)) }
        try passage.client.send("four")
        #expect(passage.arrived(within: 10_000) == "four")
      }
      #expect(passage.proxy.lostAnswers == 1)
      let next = try WireSocket(port: passage.proxy.port)
      let server = try #require(passage.listener.accept())
      try next.send("lose")
      send(server, "five", 4, 0)
      #expect(try next.receive(before: Deadline()) == Array("five".utf8))
      close(server)
    }
  }

  @Test("A request whose answer is not to be lost any more is answered")
  func relenting() throws {
    let passage = try Passage()
    passage.proxy.loseAnswer(to: "lose", .reset)
    passage.proxy.loseNoAnswer()
    try passage.client.send("lose")
    #expect(passage.arrived(within: 10_000) == "lose")
    passage.answer("two")
    #expect(try passage.client.receive(before: Deadline()) == Array("two".utf8))
  }

  @Test("Mended by breaking off, what waited is lost, and a new connection goes through")
  func breaking() throws {
    let passage = try Passage()
    try passage.client.send("one")
    #expect(passage.arrived(within: 10_000) == "one")
    passage.proxy.cut(.toTarget)
    try passage.client.send("lost")
    passage.proxy.mend(resetting: true)
    #expect(passage.arrived(within: 10_000) == "")
    let next = try WireSocket(port: passage.proxy.port)
    let server = try #require(passage.listener.accept())
    try next.send("new")
    var buffer = [UInt8](repeating: 0, count: 100)
    #expect(recv(server, &buffer, buffer.count, 0) == 3)
    close(server)
  }
}
