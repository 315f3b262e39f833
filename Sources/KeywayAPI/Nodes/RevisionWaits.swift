import HTTPServer
import KeyValueModel
import Locking
import Scheduling

/// Requests that wait until the store has come to a revision that they name (the specification, section 13).
package final class RevisionWaits: Sendable {
  /// The bounds of waiting.
  package struct Limits: Sendable {
    /// How long a request waits. `nodes.waitSeconds`.
    package var seconds = 5
    /// The most requests that wait. `nodes.waiting`.
    package var requests = 1_000
    /// Those of one client. `nodes.waitingPerClient`.
    package var requestsPerClient = 100

    /// The defaults.
    package init() {}
  }

  private struct Wait {
    let revision: Revision
    /// When it ends at the latest, in nanoseconds of the clock.
    let deadline: UInt64
    let client: ClientAddress
    let end: @Sendable () -> Void
  }

  private struct State {
    var waits: [Wait] = []
    var counts: [ClientAddress: Int] = [:]
    /// The least revision that is waited for.
    var first = Revision.max
    var isClosed = false

    mutating func take(where isOver: (Wait) -> Bool) -> [Wait] {
      var ended: [Wait] = []
      waits.removeAll { wait in
        guard isOver(wait) else { return false }
        ended.append(wait)
        return true
      }
      for wait in ended {
        let count = (counts[wait.client] ?? 1) - 1
        counts[wait.client] = count > 0 ? count : nil
      }
      first = waits.map(\.revision).min() ?? .max
      return ended
    }
  }

  private let limits: Limits
  private let shares: ShareLimit
  private let state = Locked(State())
  private let now: @Sendable () -> UInt64

  /// No request waits. `now` gives nanoseconds that only grow.
  init(_ limits: Limits, now: @escaping @Sendable () -> UInt64) {
    self.limits = limits
    self.now = now
    shares = ShareLimit(total: limits.requests, perClient: limits.requestsPerClient)
  }

  /// How many requests wait.
  var count: Int { state.withLock { $0.waits.count } }

  /// Whether one more request of a client may wait.
  func hasRoom(for client: ClientAddress) -> Bool {
    state.withLock { state in
      let held = state.counts[client] ?? 0
      return !state.isClosed && shares.refusal(of: 1, held: held, total: state.waits.count) == nil
    }
  }

  /// Has a request of a client wait for a revision: `end` is called once, from any thread, when the store has come to
  /// it, or the wait is over otherwise. `present` gives how far the store has come.
  func add(
    of client: ClientAddress, until revision: Revision, present: () -> Revision, _ end: @escaping @Sendable () -> Void
  ) {
    let isWaiting = state.withLock { state in
      guard !state.isClosed else { return false }
      let deadline = now() + UInt64(limits.seconds) * 1_000_000_000
      state.waits.append(Wait(revision: revision, deadline: deadline, client: client, end: end))
      state.counts[client, default: 0] += 1
      state.first = min(state.first, revision)
      return true
    }
    guard isWaiting else { return end() }
    // It may have come there meanwhile.
    reached(present())
  }

  /// Ends the waits for what the store has come to.
  func reached(_ revision: Revision) {
    let ended = state.withLock { state in
      state.first <= revision ? state.take { $0.revision <= revision } : []
    }
    for wait in ended { wait.end() }
  }

  /// Ends the waits that have lasted long enough.
  func sweep() {
    let now = now()
    let ended = state.withLock { state in state.waits.isEmpty ? [] : state.take { $0.deadline <= now } }
    for wait in ended { wait.end() }
  }

  /// Ends all waits before their time.
  func endAll() {
    let ended = state.withLock { $0.take { _ in true } }
    for wait in ended { wait.end() }
  }

  /// Ends all waits; no request waits from now on.
  func close() {
    let ended = state.withLock { state in
      state.isClosed = true
      return state.take { _ in true }
    }
    for wait in ended { wait.end() }
  }
}
