import Foundation
import HTTPServer
import KeyValueModel
import KeywayServer
import Logging
import Store
import Support

/// Keeps a store up to date with the node that it follows: requests the records after its revision, takes them over,
/// and repeats. It uses one thread.
///
/// `state` holds all mutable state; its lock is held only briefly. If the other node has another history, this object
/// fetches a copy of that and ends; its owner starts again with the copy.
package final class Following: Sendable {
  /// The parameters of a follower.
  package struct Plan: Sendable {
    /// The node that is followed.
    package let leader: Leader
    /// A directory for the copy of another history.
    package let directory: String
    /// The text of the only acceptable schema; nil if any is.
    package let schema: String?
    /// True if the store is a copy that was just made, which may lack many revisions.
    package let beginsWithCopy: Bool
    /// False if the leader must not be a node that authenticates clients.
    package let mayHaveAccess: Bool
    /// Called once with the copy of another history; no more records are taken over afterwards.
    package let rejoin: @Sendable (LeaderCopy) -> Void
    /// Called with true if the leader authenticates clients, with false if not, when that is known and whenever it
    /// changes. If the leader must not, no more records are taken over afterwards.
    package let noteAccess: @Sendable (Bool) -> Void

    /// Creates a plan.
    package init(
      leader: Leader, directory: String, schema: String?, beginsWithCopy: Bool, mayHaveAccess: Bool,
      rejoin: @escaping @Sendable (LeaderCopy) -> Void, noteAccess: @escaping @Sendable (Bool) -> Void
    ) {
      self.leader = leader
      self.directory = directory
      self.schema = schema
      self.beginsWithCopy = beginsWithCopy
      self.mayHaveAccess = mayHaveAccess
      self.rejoin = rejoin
      self.noteAccess = noteAccess
    }
  }

  private struct State {
    /// The time when this node was last known to be in contact, in nanoseconds of the clock.
    var lastContact: UInt64
    /// The newest revision that the leader has reported.
    var newest: Revision = 0
    /// The reason why there is no contact; nil if there is.
    var reason: String? = "it has not answered yet"
    /// True if it has been up to date once, or started with a store of its own.
    var hasCaughtUp: Bool
    /// True if the leader authenticates clients; nil before it has said so.
    var leaderHasAccess: Bool?
    var hasStopped = false
  }

  let plan: Plan
  private let store: Store
  private let revocations: Revocations
  private let directory: NodeDirectory
  private let conditions: ConditionLog
  private let now: @Sendable () -> UInt64
  private let restore: @Sendable ([StoredAttachment]) -> Void
  private let state: Locked<State>
  private let thread = Locked<SystemThread?>(nil)
  /// Signaled to end a pause early.
  private let stopping = DispatchSemaphore(value: 0)

  private static let pauses: [Double] = [0.05, 0.1, 0.2, 0.5, 1, 2]

  /// Creates an instance for a store that follows another; `restore` receives the attachments of the commits that it
  /// takes over, `now` returns monotonic time in nanoseconds.
  init(
    _ plan: Plan, store: Store, revocations: Revocations, directory: NodeDirectory, conditions: ConditionLog,
    now: @escaping @Sendable () -> UInt64, restore: @escaping @Sendable ([StoredAttachment]) -> Void
  ) {
    self.plan = plan
    self.store = store
    self.revocations = revocations
    self.directory = directory
    self.conditions = conditions
    self.now = now
    self.restore = restore
    state = Locked(State(lastContact: now(), hasCaughtUp: !plan.beginsWithCopy))
  }

  /// Starts the thread, once the store has read its journal.
  func start() {
    thread.withLock { thread in
      if thread == nil { thread = SystemThread { self.run() } }
    }
  }

  /// Stops the thread, and returns when no more records are taken over.
  func stop() {
    state.withLock { $0.hasStopped = true }
    plan.leader.client.cut()
    stopping.signal()
    let running = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    running?.join()
  }

  // MARK: What is known

  /// The time without contact, in milliseconds.
  var silenceMilliseconds: UInt64 {
    let present = now()
    return state.withLock { present > $0.lastContact ? (present - $0.lastContact) / 1_000_000 : 0 }
  }

  /// The newest revision that the leader has reported.
  var newest: Revision { state.withLock { $0.newest } }

  /// The minimum number of revisions that a copy still lacks; nil once it has been up to date.
  var missing: Revision? {
    let revision = store.revision
    return state.withLock { $0.hasCaughtUp ? nil : max($0.newest, revision) - revision }
  }

  /// The reason why there is no contact; nil if there is.
  var reason: String? { state.withLock { $0.reason } }

  // MARK: The thread

  private var hasStopped: Bool { state.withLock { $0.hasStopped } }

  private func run() {
    var failures = 0
    // The first answer to a request for records arrives only with news, and names of other nodes' streams are needed
    // before that.
    if let known = try? plan.leader.description() { directory.follow(plan.leader.client.address, known.nodes) }
    while !hasStopped {
      do {
        try advance()
        failures = 0
        continue
      } catch Leader.Refusal.access(let reason) {
        note(reason)
        return plan.noteAccess(true)
      } catch Leader.Refusal.otherHistory(let reason) {
        note(reason)
        if beginAnew(reason) { return }
      } catch {
        note("\(error)")
      }
      pause(failures)
      failures += 1
    }
  }

  private func pause(_ failures: Int) {
    let seconds = Self.pauses[min(failures, Self.pauses.count - 1)] * Double.random(in: 0.7...1.3)
    _ = stopping.wait(timeout: .now() + seconds)
  }

  /// Takes over the next records, if there are any within the time that the leader waits for some.
  private func advance() throws {
    let revision = store.revision
    guard let digest = try store.journal.digest(at: revision) else {
      throw NodeFault("this node's journal does not hold revision \(revision)")
    }
    let (batch, nodes, hasAccess) = try plan.leader.records(
      after: revision, digest, epoch: store.epoch, revocations: revocations.digest, directory)
    if hasStopped { return }
    try checkAccess(hasAccess)
    // Revocations come first: revoked subjects must not receive the records.
    if batch.revocations != revocations.digest { try takeRevocations() }
    if !batch.records.isEmpty { try store.take(batch.records, restore: restore) }
    if let nodes, !directory.isCurrent(nodes) {
      directory.follow(plan.leader.client.address, try plan.leader.description().nodes)
    }
    let present = now()
    let (silence, overflows) = batch.silenceMilliseconds.multipliedReportingOverflow(by: 1_000_000)
    let lastContact = overflows ? 0 : present - min(present, silence)
    state.withLock { state in
      // The leader's own contact before a silence says nothing about now.
      state.lastContact = max(state.lastContact, lastContact)
      state.newest = max(batch.newest, store.revision)
      if store.revision >= state.newest { state.hasCaughtUp = true }
      state.reason = nil
    }
    conditions.set(.leader, isActive: false)
  }

  /// Throws if the leader authenticates clients and must not; otherwise reports a change.
  private func checkAccess(_ hasAccess: Bool) throws(Leader.Refusal) {
    guard plan.mayHaveAccess || !hasAccess else { throw plan.leader.accessRefusal }
    let isNew = state.withLock { state in
      defer { state.leaderHasAccess = hasAccess }
      return state.leaderHasAccess != hasAccess
    }
    if isNew { plan.noteAccess(hasAccess) }
  }

  /// Replaces the revocations with those of the leader. Blocks on the leader's answer and on the disk. Throws if either
  /// fails.
  func takeRevocations() throws { try revocations.replace(plan.leader.revocations()) }

  private func note(_ reason: String) {
    if hasStopped { return }
    state.withLock { $0.reason = reason }
    conditions.set(.leader, isActive: true, detail: "\(plan.leader.client.address): \(reason)")
  }

  /// Fetches a copy of another history. Returns false if that fails and should be tried again.
  private func beginAnew(_ reason: String) -> Bool {
    do throws(Leader.Refusal) {
      let copy = try LeaderCopy.fetch(
        from: plan.leader, into: plan.directory, schema: plan.schema, mayHaveAccess: plan.mayHaveAccess)
      if hasStopped { return true }
      plan.rejoin(copy)
      return true
    } catch .access(let reason) {
      note(reason)
      plan.noteAccess(true)
      return true
    } catch {
      note("\(reason); a copy to start again from cannot be fetched: \(error)")
      return false
    }
  }
}

extension Condition {
  /// There is no contact with the node that this one follows.
  fileprivate static let leader = Condition(
    "leader", "this node cannot follow its leader: it continues to serve what it has", level: .error)
}
