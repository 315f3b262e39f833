import Foundation
import HTTPServer
import KeyValueModel
import KeywayServer
import Logging
import Store
import Support

/// Keeps a store up with the node that it follows: asks for the records after what it has, takes them over, and asks
/// again. One thread does it.
///
/// `state` is all that changes, under its lock, which is held for a look. Where the other node has another history, it
/// fetches a copy of that and ends; its owner begins anew with the copy.
package final class Following: Sendable {
  /// What a follower needs to begin.
  package struct Plan: Sendable {
    /// The node that is followed.
    package let leader: Leader
    /// A directory for the copy of another history.
    package let directory: String
    /// The text of the one schema that will do; nil where any will.
    package let schema: String?
    /// Whether the store is a copy that was just made, which may lack much.
    package let beginsWithCopy: Bool
    /// False if the node that is followed must not be one that asks who its clients are.
    package let mayHaveAccess: Bool
    /// Gets the copy of another history, once; nothing more is taken over then.
    package let rejoin: @Sendable (LeaderCopy) -> Void
    /// Called with whether that node asks who its clients are, when that is known and whenever it changes. Where it
    /// must not, nothing more is taken over then.
    package let noteAccess: @Sendable (Bool) -> Void

    /// A plan of these parts.
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
    /// When this node was last known to hear, in nanoseconds of the clock.
    var heard: UInt64
    /// The newest revision that it was told of.
    var newest: Revision = 0
    /// Why it does not hear; nil where it does.
    var reason: String? = "it has not answered yet"
    /// Whether it has had everything there was, once, or began with a store of its own.
    var hasCaughtUp: Bool
    /// True if the node that is followed asks who its clients are; nil before it has said so.
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
  /// Ends a pause early.
  private let stopping = DispatchSemaphore(value: 0)

  private static let pauses: [Double] = [0.05, 0.1, 0.2, 0.5, 1, 2]

  /// A store that is to follow; `restore` gets what was kept with the commits that it takes over, `now` gives
  /// nanoseconds that only grow.
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
    state = Locked(State(heard: now(), hasCaughtUp: !plan.beginsWithCopy))
  }

  /// Begins, once the store has read its journal.
  func start() {
    thread.withLock { thread in
      if thread == nil { thread = SystemThread { self.run() } }
    }
  }

  /// Ends it, and returns when nothing more is taken over.
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

  /// For how many milliseconds nothing was heard.
  var silenceMilliseconds: UInt64 {
    let present = now()
    return state.withLock { present > $0.heard ? (present - $0.heard) / 1_000_000 : 0 }
  }

  /// The newest revision that this node was told of.
  var newest: Revision { state.withLock { $0.newest } }

  /// How many revisions a copy still lacks, at least; nil once it has had everything.
  var missing: Revision? {
    let revision = store.revision
    return state.withLock { $0.hasCaughtUp ? nil : max($0.newest, revision) - revision }
  }

  /// Why it does not hear; nil where it does.
  var reason: String? { state.withLock { $0.reason } }

  // MARK: The thread

  private var hasStopped: Bool { state.withLock { $0.hasStopped } }

  private func run() {
    var failures = 0
    // The first answer comes when there is something new, and names of the others' streams are asked for before.
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

  /// Takes over what comes next, if something does within the time that the other node waits.
  private func advance() throws {
    let revision = store.revision
    guard let digest = try store.journal.digest(at: revision) else {
      throw NodeFault("this node's journal does not hold revision \(revision)")
    }
    let (batch, nodes, hasAccess) = try plan.leader.records(
      after: revision, digest, epoch: store.epoch, revocations: revocations.digest, directory)
    if hasStopped { return }
    try checkAccess(hasAccess)
    // Revocations come first: the revoked are to hear nothing of the records.
    if batch.revocations != revocations.digest { try takeRevocations() }
    if !batch.records.isEmpty { try store.take(batch.records, restore: restore) }
    if let nodes, !directory.isCurrent(nodes) {
      directory.follow(plan.leader.client.address, try plan.leader.description().nodes)
    }
    let present = now()
    let heard = present - min(present, batch.silenceMilliseconds * 1_000_000)
    state.withLock { state in
      // What the other one heard before it fell silent says nothing of now.
      state.heard = max(state.heard, heard)
      state.newest = max(batch.newest, store.revision)
      if store.revision >= state.newest { state.hasCaughtUp = true }
      state.reason = nil
    }
    conditions.set(.leader, isActive: false)
  }

  /// Throws if the node that is followed asks who its clients are, and must not.
  private func checkAccess(_ hasAccess: Bool) throws(Leader.Refusal) {
    guard plan.mayHaveAccess || !hasAccess else { throw plan.leader.accessRefusal }
    let isNew = state.withLock { state in
      defer { state.leaderHasAccess = hasAccess }
      return state.leaderHasAccess != hasAccess
    }
    if isNew { plan.noteAccess(hasAccess) }
  }

  /// Has the revocations that the other node has. Waits for its answer and for the disk. Throws where one of both
  /// fails.
  func takeRevocations() throws { try revocations.replace(plan.leader.revocations()) }

  private func note(_ reason: String) {
    if hasStopped { return }
    state.withLock { $0.reason = reason }
    conditions.set(.leader, isActive: true, detail: "\(plan.leader.client.address): \(reason)")
  }

  /// Fetches a copy of another history. False where there is none to be had.
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
      note("\(reason); a copy to begin anew with cannot be had: \(error)")
      return false
    }
  }
}

extension Condition {
  /// Nothing is heard of the node that this one follows.
  fileprivate static let leader = Condition(
    "leader", "nothing is heard of the node that this one follows: it goes on serving what it has", level: .error)
}
