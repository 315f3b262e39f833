import Foundation
import Glibc
import Histogram
import Support
import TestKit

/// Clients that must not be affected: connections that send requests at a steady rate, and measure the times from when
/// each request was due to its answer.
final class BystanderClients: Sendable {
  /// The load of the clients.
  struct Plan: Sendable {
    var address: SocketAddress
    /// The number of connections of all threads together.
    var connections: Int
    var threads: Int
    /// The number of requests per second of all threads together.
    var rate: Int
    /// Returns the request for a turn of a thread.
    var request: @Sendable (_ thread: Int, _ turn: Int) -> WireRequest
  }

  /// The results of the requests.
  struct Outcome: Sendable {
    var tally = NeighbourTally()
    var latency = Latency()
  }

  private struct State {
    var tally = NeighbourTally()
    var histogram = Latency.histogram()
    var isStopped = false
    var running = 0
  }

  /// The time limit for an answer, in seconds.
  private static let timeoutSeconds = 10.0

  private let plan: Plan
  private let state = Locked(State())

  init(_ plan: Plan) {
    self.plan = plan
  }

  /// Starts the threads.
  func start() {
    state.withLock { $0.running = plan.threads }
    for thread in 0..<plan.threads {
      Thread.detachNewThread { [self] in
        run(thread)
        state.withLock { $0.running -= 1 }
      }
    }
  }

  /// Stops sending, and waits for the last answers.
  func stop() {
    state.withLock { $0.isStopped = true }
    _ = Deadline(seconds: Self.timeoutSeconds + 1).awaits { state.withLock { $0.running == 0 } }
  }

  /// Returns the results since the last call.
  func takeOutcome() -> Outcome {
    state.withLock { state in
      defer {
        state.tally = NeighbourTally()
        state.histogram.reset()
      }
      return Outcome(tally: state.tally, latency: Latency(state.histogram))
    }
  }

  private func run(_ thread: Int) {
    var connections = [WireConnection?](repeating: nil, count: max(1, plan.connections / plan.threads))
    let interval = UInt64(1_000_000_000 * plan.threads / plan.rate)
    var due = SystemClock.now() + interval * UInt64(thread) / UInt64(plan.threads)
    var turn = 0
    while !state.withLock({ $0.isStopped }) {
      let now = SystemClock.now()
      if now < due { usleep(UInt32((due - now) / 1_000)) }
      let status = exchange(plan.request(thread, turn), &connections[turn % connections.count])
      let microseconds = (SystemClock.now() - due) / 1_000
      state.withLock { state in
        state.tally.count(status)
        state.histogram.record(min(microseconds, 599_000_000))
      }
      due += interval
      turn += 1
    }
  }

  private func exchange(_ request: WireRequest, _ connection: inout WireConnection?) -> Int? {
    do {
      let open = try connection ?? WireConnection(plan.address, timeoutSeconds: Self.timeoutSeconds)
      connection = open
      return try open.exchange(request).status
    } catch {
      connection = nil
      return nil
    }
  }
}

/// A probe that requests `/healthz` every few milliseconds, every tenth time on a new connection, and records the
/// longest time without an answer.
final class HealthProbe: Sendable {
  private struct State {
    var lastAnswer = SystemClock.now()
    var longest: UInt64 = 0
    var isStopped = false
  }

  private static let pauseMicroseconds: UInt32 = 5_000
  private static let timeoutSeconds = 60.0

  private let address: SocketAddress
  private let state = Locked(State())

  /// Creates a probe, and starts it.
  init(_ address: SocketAddress) {
    self.address = address
    Thread.detachNewThread { [self] in run() }
  }

  /// Stops the probe.
  func stop() { state.withLock { $0.isStopped = true } }

  /// Returns the longest time between two answers since the last call, in milliseconds, including the time since the
  /// last answer.
  func takeLongestGapMilliseconds() -> Double {
    state.withLock { state in
      let now = SystemClock.now()
      defer { (state.longest, state.lastAnswer) = (0, max(state.lastAnswer, now)) }
      return Double(max(state.longest, now > state.lastAnswer ? now - state.lastAnswer : 0)) / 1e6
    }
  }

  private func run() {
    var connection: WireConnection?
    var turn = 0
    while !state.withLock({ $0.isStopped }) {
      if turn.isMultiple(of: 10) { connection = nil }
      turn += 1
      do {
        let open = try connection ?? WireConnection(address, timeoutSeconds: Self.timeoutSeconds)
        connection = open
        try open.must(WireRequest("GET", "/healthz"))
        state.withLock { state in
          let now = SystemClock.now()
          if now > state.lastAnswer { state.longest = max(state.longest, now - state.lastAnswer) }
          state.lastAnswer = now
        }
      } catch {
        connection = nil
      }
      usleep(Self.pauseMicroseconds)
    }
  }
}
