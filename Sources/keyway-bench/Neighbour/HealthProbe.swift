import Foundation
import Glibc
import Support
import TestKit

/// Asks `/healthz` every few milliseconds, every tenth time on a new connection, and keeps for how long it was silent.
final class HealthProbe: Sendable {
  private struct State {
    var lastAnswer = MonotonicClock.now()
    var longest: UInt64 = 0
    var isStopped = false
  }

  private static let pauseMicroseconds: UInt32 = 5_000
  private static let timeoutSeconds = 60.0

  private let address: SocketAddress
  private let state = Locked(State())

  /// Begins to ask.
  init(_ address: SocketAddress) {
    self.address = address
    Thread.detachNewThread { [self] in run() }
  }

  /// Ends it.
  func stop() { state.withLock { $0.isStopped = true } }

  /// The longest time between two answers since the last call, in milliseconds; one that lasts counts.
  func takeLongestGapMilliseconds() -> Double {
    state.withLock { state in
      let now = MonotonicClock.now()
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
          let now = MonotonicClock.now()
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
