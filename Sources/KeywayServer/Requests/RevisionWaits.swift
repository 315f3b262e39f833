import Dispatch
package import HTTPServer
package import KeyValueModel
package import Store
import Support

/// Requests that wait until the store reaches a revision that they name (the specification, section 13).
package final class RevisionWaits: Sendable {
  /// Limits of waiting.
  package struct Limits: Sendable {
    /// The maximum time that a request waits, in seconds. `nodes.waitSeconds`.
    package var seconds = 5
    /// The maximum number of waiting requests. `nodes.waiting`.
    package var requests = 1_000
    /// The maximum number of waiting requests of one client. `nodes.waitingPerClient`.
    package var requestsPerClient = 100

    /// Creates the default limits.
    package init() {}
  }

  private struct Wait {
    let revision: Revision
    /// The latest end of the wait, in nanoseconds of the clock.
    let deadline: UInt64
    let client: ClientAddress
    let end: @Sendable () -> Void
  }

  private struct State {
    var waits: [Wait] = []
    var counts: [ClientAddress: Int] = [:]
    /// The lowest revision that a request waits for.
    var first = Revision.max
    var isClosed = false
    /// The deadline for which a timer is set, or nil if there is none.
    var timed: UInt64?

    mutating func take(where isFinished: (Wait) -> Bool) -> [Wait] {
      var ended: [Wait] = []
      waits.removeAll { wait in
        guard isFinished(wait) else { return false }
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
  /// The queue that times the ends of all waits.
  private static let timing = DispatchQueue(label: "keyway.waits", qos: .userInitiated)

  /// Creates an instance without waits. `now` returns monotonic nanoseconds.
  package init(_ limits: Limits, now: @escaping @Sendable () -> UInt64) {
    self.limits = limits
    self.now = now
    shares = ShareLimit(total: limits.requests, perClient: limits.requestsPerClient)
  }

  /// The number of waiting requests.
  package var count: Int { state.withLock { $0.waits.count } }

  /// Returns true if one more request of a client may wait.
  package func hasRoom(for client: ClientAddress) -> Bool {
    state.withLock { state in
      let held = state.counts[client] ?? 0
      return !state.isClosed && shares.refusal(of: 1, held: held, total: state.waits.count) == nil
    }
  }

  /// Makes a request wait until the store reaches the revision of a cursor, and be handled once more then.
  ///
  /// - Parameter judged: The revision of the store before anything about the request was evaluated, its session for
  ///   example. If the store has advanced since, that may be out of date.
  /// - Returns: Nil if the request was evaluated in a state as new as the cursor, or if the cursor is of another store.
  /// - Throws: `behind` if the request has waited already or may not wait.
  package func response(
    to request: borrowing Request, until cursor: Cursor, judgedAt judged: Revision, in store: Store
  ) throws(Problem) -> HandlerResponse? {
    guard cursor.epoch == store.epoch, cursor.revision > judged else { return nil }
    let client = request.client
    guard !request.isHandledAgain, hasRoom(for: client) else {
      throw Problem(.behind, "the store is at revision \(judged) and has not reached \(cursor)")
    }
    request.keepBody()
    return .deferred { [self] completion in
      add(of: client, until: cursor.revision, present: { store.revision }) { completion.handleAgain() }
    }
  }

  /// Calls `answer` when the store reaches the revision of another node's response: without a problem, or with `behind`
  /// if that takes too long.
  package func awaitRevision(
    _ revision: Revision, of client: ClientAddress, in store: Store,
    _ answer: @escaping @Sendable (_ problem: Problem?) -> Void
  ) {
    guard revision > store.revision else { return answer(nil) }
    add(of: client, until: revision, present: { store.revision }) {
      let present = store.revision
      let detail = "the response is of revision \(revision), but this node has only reached \(present)"
      answer(present < revision ? Problem(.behind, detail) : nil)
    }
  }

  /// The present time of the clock, in nanoseconds: the beginning of a wait.
  package var present: UInt64 { now() }

  /// The earliest deadline of all waits, in nanoseconds of the clock. Nil if no request waits.
  var nextDeadline: UInt64? { state.withLock { $0.waits.lazy.map(\.deadline).min() } }

  /// Makes a request of a client wait for a revision. `end` is called once, from any thread, when the store reaches it
  /// or the wait ends otherwise. `present` returns the present revision of the store. `beginning` is the time at which
  /// the wait began, or nil for now.
  package func add(
    of client: ClientAddress, until revision: Revision, since beginning: UInt64? = nil, present: () -> Revision,
    _ end: @escaping @Sendable () -> Void
  ) {
    let deadline = state.withLock { state -> UInt64? in
      guard !state.isClosed else { return nil }
      let deadline = (beginning ?? now()) + UInt64(limits.seconds) * 1_000_000_000
      state.waits.append(Wait(revision: revision, deadline: deadline, client: client, end: end))
      state.counts[client, default: 0] += 1
      state.first = min(state.first, revision)
      return deadline
    }
    guard let deadline else { return end() }
    time(deadline)
    // The store may have reached the revision meanwhile.
    reached(present())
  }

  /// Sets a timer that ends the waits with this deadline, unless an earlier timer is set anyway.
  private func time(_ deadline: UInt64) {
    let isFirst = state.withLock { state in
      guard deadline < state.timed ?? .max else { return false }
      state.timed = deadline
      return true
    }
    guard isFirst else { return }
    let present = now()
    Self.timing.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: deadline - min(deadline, present)))) {
      [weak self] in
      guard let self else { return }
      sweep()
      state.withLock { if $0.timed == deadline { $0.timed = nil } }
      if let next = nextDeadline { time(next) }
    }
  }

  /// Ends the waits for revisions that the store has reached.
  package func reached(_ revision: Revision) {
    end { state in state.first <= revision ? state.take { $0.revision <= revision } : [] }
  }

  /// Ends the waits whose deadlines have passed.
  func sweep() {
    let now = now()
    end { state in state.waits.isEmpty ? [] : state.take { $0.deadline <= now } }
  }

  /// Ends all waits early.
  package func endAll() {
    end { $0.take { _ in true } }
  }

  /// Ends all waits. From now on, no request waits.
  package func close() {
    end { state in
      state.isClosed = true
      return state.take { _ in true }
    }
  }

  private func end(_ take: (inout State) -> [Wait]) {
    let ended = state.withLock { take(&$0) }
    for wait in ended { wait.end() }
  }
}
