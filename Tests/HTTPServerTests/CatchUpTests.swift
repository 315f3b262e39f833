import Logging
import Support
import TestKit
import Testing

@testable import HTTPServer

/// Slow readers miss nothing while several threads post: they receive each event, or a catch-up that covers it.
@Suite(.serialized, .timeLimit(.minutes(60))) struct CatchUpTests {
  /// Posts numbered events, and sends catch-ups to the streams that missed some: the last number so far, in one of
  /// three cases marked as not the last answer.
  private final class Owner: Sendable {
    private struct State {
      var last = 0
      var answers = 0
    }

    private let state = Locked(State())
    private let hub: StreamHub
    private let padding = String(repeating: "x", count: 1_000)

    init(_ hub: StreamHub) {
      self.hub = hub
    }

    var last: Int { state.withLock { $0.last } }

    func post() {
      state.withLock { state in
        state.last += 1
        let event = EventBytes(Array("event \(state.last) \(padding)\n\n".utf8), position: UInt64(state.last))
        hub.post([.channel(ChannelID(1), event)], position: UInt64(state.last))
      }
    }

    func answer(_ id: StreamID) {
      state.withLock { state in
        state.answers += 1
        let isLast = state.answers % 3 > 0
        let text = "\(isLast ? "last" : "more") \(state.last)\n\n"
        hub.post([.catchUp(id, EventBytes(Array(text.utf8)), isLast: isLast)], position: nil)
      }
    }
  }

  /// The events and catch-ups that one reader received.
  private struct Reading {
    /// The first number of each series that it missed.
    var firstMissed: [UInt64] = []
    /// The last number that it received.
    var last = 0
    var faults: [String] = []
    private var isBehind = false

    init() {}

    /// Takes an event or a catch-up. Returns true if it ends a catch-up.
    mutating func take(_ text: String) -> Bool {
      let words = text.split(separator: " ")
      guard let number = words.dropFirst().first.flatMap({ Int($0.prefix { $0.isNumber }) }) else {
        faults.append("unexpected: \(text.prefix(40))")
        return false
      }
      if words[0] == "event" {
        if number != last + 1 || isBehind { faults.append("event \(number) after \(last)") }
        last = number
        return false
      }
      if !isBehind { firstMissed.append(UInt64(last + 1)) }
      if number < last { faults.append("a catch-up to \(number) after \(last)") }
      last = number
      isBehind = words[0] == "more"
      return !isBehind
    }

    /// Reads until it has caught up `rounds` times. `misses` returns the number of times that it has lagged.
    mutating func read(_ client: TestClient, rounds: Int, misses: () -> Int) {
      for round in 1...rounds where faults.isEmpty {
        // Waits for the next lag, then reads until it has received the events that it missed.
        _ = Deadline().awaits { misses() >= round }
        while faults.isEmpty {
          guard let text = client.readChunk() else {
            faults.append("the stream ended")
            break
          }
          if take(text), firstMissed.count >= round { break }
        }
      }
    }
  }

  @Test func everyEventIsEitherDeliveredOrCaughtUpWithExactlyOnce() throws {
    let readers = 4
    let rounds = 8
    let test = try TestServer.streaming { $0.pendingBytesPerStream = 20_000 }
    let owner = Owner(test.hub)
    test.listener.whenCaughtUp { owner.answer($0) }
    let unreported = Locked([String]())
    test.listener.whenLagging { [hub = test.hub] miss in
      let settled = hub.settledPosition
      if settled >= miss.first { unreported.withLock { $0.append("\(miss.first) at \(settled)") } }
    }
    let readings = Locked([Int: Reading]())
    let isFinished = Locked(false)
    let finished = Locked(0)
    let target = Locked<Int?>(nil)
    let threads = try (1...readers).map { number in
      let client = try TestClient(port: test.server.port, receiveBuffer: 4_096)
      client.get("/")
      _ = client.read(until: "retry: 1\n\n\r\n")
      let held = Locked(client)
      return SystemThread { [listener = test.listener] in
        held.withLock { client in
          var reading = Reading()
          reading.read(client, rounds: rounds) { listener.misses.count { $0.id == StreamID(UInt64(number)) } }
          finished.withLock { $0 += 1 }
          while target.withLock({ $0 == nil }), reading.faults.isEmpty {
            guard let text = client.readChunk() else { break }
            _ = reading.take(text)
          }
          let end = target.withLock { $0 } ?? 0
          while reading.last < end, reading.faults.isEmpty, let text = client.readChunk() { _ = reading.take(text) }
          readings.withLock { $0[number] = reading }
        }
      }
    }
    let posters = (0..<2).map { _ in
      SystemThread {
        while !isFinished.withLock({ $0 }) {
          for _ in 0..<20 { owner.post() }
          SystemThread.pause(milliseconds: 1)
        }
      }
    }
    #expect(Deadline().awaits { finished.withLock { $0 == readers } })
    isFinished.withLock { $0 = true }
    for poster in posters { poster?.join() }
    target.withLock { $0 = owner.last + 1 }
    // The readers may already wait for this event.
    owner.post()
    for thread in threads { thread?.join() }
    for number in 1...readers {
      let reading = try #require(readings.withLock { $0[number] })
      #expect(reading.faults.isEmpty)
      #expect(reading.last == owner.last)
      let misses = test.listener.misses.filter { $0.id == StreamID(UInt64(number)) }
      #expect(reading.firstMissed == misses.map(\.first))
      #expect(reading.firstMissed.count >= rounds)
    }
    #expect(unreported.withLock { $0 }.isEmpty)
    #expect(Deadline().awaits { test.hub.settledPosition == UInt64(owner.last) })
    // The readers closed their connections; the server ended no stream.
    #expect(test.listener.history.allSatisfy { $0.end == .clientGone })
    #expect(test.hub.laggingStreams == 0)
  }

  @Test func aLongBeginningReachesAReaderThatReadsSlowly() throws {
    // Far more than the kernel takes at once: it has to ask for the rest again and again.
    let prelude = String(repeating: "p", count: 16 << 20) + "\n\n"
    let test = try TestServer.streaming(prelude: prelude)
    let clients = try [nil, 4_096].map { try TestClient(port: test.server.port, receiveBuffer: $0) }
    for client in clients {
      client.get("/")
      _ = client.read(until: "\r\n\r\n")
      #expect(client.readChunk()?.utf8.count == prelude.utf8.count)
    }
    test.post("next\n\n")
    for client in clients { #expect(client.readChunk() == "next\n\n") }
    #expect(test.listener.misses.isEmpty)
  }

  @Test func aHubSettlesWhatWasPostedOnceItHasThreads() throws {
    let limits = ServerLimits.with { _ in }
    let hub = StreamHub(limits: limits, logger: .init(label: "test"))
    hub.post([], position: 3)
    #expect(hub.settledPosition == 0)
    try hub.start(delegate: HubListener())
    #expect(Deadline().awaits { hub.settledPosition == 3 })
    hub.post([], position: 5)
    #expect(Deadline().awaits { hub.settledPosition == 5 })
    hub.stop()
    #expect(hub.settledPosition == 5)
  }
}
