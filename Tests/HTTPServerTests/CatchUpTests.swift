import Logging
import Support
import TestKit
import Testing

@testable import HTTPServer

/// Whether what slow readers are told is whole, while several threads post.
@Suite(.serialized, .timeLimit(.minutes(60))) struct CatchUpTests {
  /// Posts numbered events, and answers for the streams that missed some: with the last number by then, and now and
  /// then in two answers.
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

  /// What one reader was told.
  private struct Reading {
    /// The numbers that it was told to have missed, by the first of each series.
    var firstMissed: [UInt64] = []
    /// The last number it knows of.
    var last = 0
    var faults: [String] = []
    private var isBehind = false

    init() {}

    /// Gives whether this was the end of a catch-up.
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

    /// Reads until it has been brought to the present so many times; `misses` says how often it has lagged.
    mutating func read(_ client: TestClient, rounds: Int, misses: () -> Int) {
      for round in 1...rounds where faults.isEmpty {
        // It reads on when it lags again, until it has received what it missed.
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
    let isOver = Locked(false)
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
        while !isOver.withLock({ $0 }) {
          for _ in 0..<20 { owner.post() }
          SystemThread.pause(milliseconds: 1)
        }
      }
    }
    #expect(Deadline().awaits { finished.withLock { $0 == readers } })
    isOver.withLock { $0 = true }
    for poster in posters { poster?.join() }
    target.withLock { $0 = owner.last + 1 }
    // The readers may wait for it already.
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
    // The readers have left by themselves.
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
