import Foundation
import Support
import TestKit
import Testing

@Suite("A proxy that fails when it is told to") struct FaultyProxyTests {
  private let patience = Int32(Deadline.patienceSeconds * 1000)

  /// A connection through a proxy, both ends of which are here.
  private final class Passage {
    let listener: LoopbackListener
    let proxy: FaultyProxy
    let client: WireSocket
    let server: Int32

    init(answerMark: String = "") throws {
      listener = try LoopbackListener()
      proxy = try FaultyProxy(to: listener.port, answerMark: answerMark)
      client = try WireSocket(port: proxy.port)
      server = try #require(listener.accept())
    }

    deinit { close(server) }

    /// Returns the text that the server receives within the time, or nil if none comes.
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
    for direction in FaultyProxy.Direction.allCases {
      let passage = try Passage()
      try passage.client.send("one")
      #expect(passage.arrived(within: patience) == "one")
      passage.proxy.cut(direction)
      try passage.client.send("two")
      passage.answer("three")
      switch direction {
      case .toTarget:
        #expect(try passage.client.receive(before: Deadline()) == Array("three".utf8))
        #expect(passage.arrived(within: 50) == nil)
        passage.proxy.mend()
        #expect(passage.arrived(within: patience) == "two")
      case .fromTarget:
        #expect(passage.arrived(within: patience) == "two")
        #expect(throws: LoopbackError.self) { try passage.client.receive(before: Deadline(seconds: 0.05)) }
        passage.proxy.mend()
        #expect(try passage.client.receive(before: Deadline()) == Array("three".utf8))
      }
    }
  }

  @Test("The answer to one request is lost, which has come through, and its connection is broken off or falls silent")
  func losing() throws {
    for ending in FaultyProxy.Ending.allCases {
      let passage = try Passage()
      passage.proxy.lose(.answer, of: "lose", ending: ending)
      try passage.client.send("one")
      #expect(passage.arrived(within: patience) == "one")
      passage.answer("two")
      #expect(try passage.client.receive(before: Deadline()) == Array("two".utf8))
      #expect(passage.proxy.lossCount == 0)
      try passage.client.send("please lose me")
      #expect(passage.arrived(within: patience) == "please lose me")
      passage.answer("three")
      switch ending {
      case .reset: #expect((try? passage.client.receive(before: Deadline())) ?? [] == [])
      case .silence:
        #expect(throws: LoopbackError.self) { try passage.client.receive(before: Deadline(seconds: 0.05)) }
        try passage.client.send("four")
        #expect(passage.arrived(within: patience) == "four")
      }
      #expect(passage.proxy.lossCount == 1)
      let next = try WireSocket(port: passage.proxy.port)
      let server = try #require(passage.listener.accept())
      try next.send("lose")
      send(server, "five", 4, 0)
      #expect(try next.receive(before: Deadline()) == Array("five".utf8))
      close(server)
    }
  }

  @Test("An answer of several parts is lost when the last has come, and by then the target has told it whole")
  func losingTheWholeAnswer() throws {
    let passage = try Passage(answerMark: "end")
    let isLost = Locked(false)
    passage.proxy.lose(.answer, of: "lose") { isLost.withLock { $0 = true } }
    try passage.client.send("lose")
    #expect(passage.arrived(within: patience) == "lose")
    passage.answer("begin")
    #expect(throws: LoopbackError.self) { try passage.client.receive(before: Deadline(seconds: 0.05)) }
    #expect(!isLost.withLock { $0 })
    passage.answer("end")
    #expect((try? passage.client.receive(before: Deadline())) ?? [] == [])
    #expect(isLost.withLock { $0 })
  }

  @Test("A request that is lost never arrives, and one that loses time arrives once the action has returned")
  func losingRequests() throws {
    let passage = try Passage()
    let go = DispatchSemaphore(value: 0)
    passage.proxy.lose(.time, of: "late") { go.wait() }
    try passage.client.send("late")
    #expect(passage.arrived(within: 50) == nil)
    go.signal()
    #expect(passage.arrived(within: patience) == "late")
    passage.proxy.lose(.request, of: "never")
    try passage.client.send("never")
    #expect(passage.arrived(within: patience) == "")
    #expect(passage.proxy.lossCount == 2)
  }

  @Test("It refuses connections and breaks off those that there are, until it takes them again on the same port")
  func refusing() throws {
    let passage = try Passage()
    let port = passage.proxy.port
    passage.proxy.refuse()
    #expect(passage.arrived(within: patience) == "")
    #expect(throws: LoopbackError.self) { try WireSocket(port: port) }
    try passage.proxy.accept()
    #expect(passage.proxy.port == port)
    let next = try WireSocket(port: port)
    let server = try #require(passage.listener.accept())
    send(server, "two", 3, 0)
    #expect(try next.receive(before: Deadline()) == Array("two".utf8))
    close(server)
  }

  @Test("A request whose answer is not to be lost any more is answered")
  func relenting() throws {
    let passage = try Passage()
    passage.proxy.lose(.answer, of: "lose", ending: .reset)
    passage.proxy.loseNothing()
    try passage.client.send("lose")
    #expect(passage.arrived(within: patience) == "lose")
    passage.answer("two")
    #expect(try passage.client.receive(before: Deadline()) == Array("two".utf8))
  }

  @Test("Mended by breaking off, what waited is lost, and a new connection goes through")
  func breaking() throws {
    let passage = try Passage()
    try passage.client.send("one")
    #expect(passage.arrived(within: patience) == "one")
    passage.proxy.cut(.toTarget)
    try passage.client.send("lost")
    passage.proxy.mend(resetting: true)
    #expect(passage.arrived(within: patience) == "")
    let next = try WireSocket(port: passage.proxy.port)
    let server = try #require(passage.listener.accept())
    try next.send("new")
    var buffer = [UInt8](repeating: 0, count: 100)
    #expect(recv(server, &buffer, buffer.count, 0) == 3)
    close(server)
  }
}
