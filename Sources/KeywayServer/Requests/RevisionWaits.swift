import Dispatch
package import HTTPServer
package import KeyValueModel
package import Store
import Support

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
    /// The deadline at which a timer looks at the waits next; nil where none runs.
    var timed: UInt64?

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
  /// Where the ends of all waits are timed.
  private static let timing = DispatchQueue(label: "keyway.waits", qos: .userInitiated)

  /// No request waits. `now` gives nanoseconds that only grow.
  package init(_ limits: Limits, now: @escaping @Sendable () -> UInt64) {
    self.limits = limits
    self.now = now
    shares = ShareLimit(total: limits.requests, perClient: limits.requestsPerClient)
  }

  /// How many requests wait.
  package var count: Int { state.withLock { $0.waits.count } }

  /// Whether one more request of a client may wait.
  package func hasRoom(for client: ClientAddress) -> Bool {
    state.withLock { state in
      let held = state.counts[client] ?? 0
      return !state.isClosed && shares.refusal(of: 1, held: held, total: state.waits.count) == nil
    }
  }

  /// Makes a request wait until the store has come to a revision, and be judged once more then.
  ///
  /// - Parameter judged: The revision of the store before anything about the request was judged, its session for
  ///   example. If the store has come further since, that may be out of date.
  /// - Returns: Nil if the request was judged by a state as new as the cursor, or the cursor is of another store.
  /// - Throws: `behind` if the request has waited already or may not wait.
  package func response(
    to request: borrowing Request, until cursor: Cursor, judgedAt judged: Revision, in store: Store
  ) throws(Problem) -> HandlerResponse? {
    guard cursor.epoch == store.epoch, cursor.revision > judged else { return nil }
    let client = request.client
    guard !request.isHandledAgain, hasRoom(for: client) else {
      throw Problem(.behind, "the store is at revision \(judged) and has not come to \(cursor)")
    }
    request.keepBody()
    return .deferred { [self] completion in
      add(of: client, until: cursor.revision, present: { store.revision }) { completion.handleAgain() }
    }
  }

  /// Calls `answer` when the store has come to the revision of another node's answer: without a problem, or with
  /// `behind` if that takes too long.
  package func awaitRevision(
    _ revision: Revision, of client: ClientAddress, in store: Store,
    _ answer: @escaping @Sendable (_ problem: Problem?) -> Void
  ) {
    guard revision > store.revision else { return answer(nil) }
    add(of: client, until: revision, present: { store.revision }) {
      let present = store.revision
      let detail = "the answer is of revision \(revision), and this node has come to \(present) only"
      answer(present < revision ? Problem(.behind, detail) : nil)
    }
  }

  /// What the clock says: when a wait begins.
  package var present: UInt64 { now() }

  /// When the wait that ends first is over at the latest, in nanoseconds of the clock; nil where no request waits.
  var nextDeadline: UInt64? { state.withLock { $0.waits.lazy.map(\.deadline).min() } }

  /// Has a request of a client wait for a revision: `end` is called once, from any thread, when the store has come to
  /// it, or the wait is over otherwise. `present` gives how far the store has come; `beginning` is when the wait began,
  /// now if it is nil.
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
    // It may have come there meanwhile.
    reached(present())
  }

  /// Has the waits end that are over at a deadline, unless they are looked at before it in any case.
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

  /// Ends the waits for what the store has come to.
  package func reached(_ revision: Revision) {
    end { state in state.first <= revision ? state.take { $0.revision <= revision } : [] }
  }

  /// Ends the waits that have lasted long enough.
  func sweep() {
    let now = now()
    end { state in state.waits.isEmpty ? [] : state.take { $0.deadline <= now } }
  }

  /// Ends all waits before their time.
  package func endAll() {
    end { $0.take { _ in true } }
  }

  /// Ends all waits; no request waits from now on.
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
