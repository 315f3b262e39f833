import DequeModule
import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Store
import Support

/// Writes that other nodes have forwarded to this one, and their outcomes.
///
/// `state` holds all mutable state; its lock is held only briefly. No request is answered under the lock.
final class PassedWrites: Sendable {
  private struct State {
    var memory: PassedWriteMemory
    /// The repeated requests for each write under way, which wait for its response.
    var waiting: [WriteID: [Completion]] = [:]
  }

  private let state: Locked<State>
  /// The maximum number of requests that wait for one write.
  private static let mostWaiting = 16

  /// Creates a memory of at most `limit` writes.
  init(limit: Int) { state = Locked(State(memory: PassedWriteMemory(limit: limit))) }

  /// The number of remembered writes.
  var count: Int { state.withLock { $0.memory.count } }

  /// Begins to accept writes: everything that was stored with commits after a revision is known.
  func begin(after revision: Revision) { state.withLock { $0.memory.begin(after: revision) } }

  /// Notes the attachments of records that were read, oldest first.
  func restore(_ attachments: [StoredAttachment]) {
    state.withLock { state in
      for attachment in attachments {
        guard let (id, binding) = PassedAttachment.name(in: attachment.bytes) else { continue }
        state.memory.note(id, binding, at: attachment.revision) { PassedAttachment(attachment.bytes)?.stored.response }
      }
    }
  }

  /// Begins a write that got its id at a revision.
  func begin(_ write: BoundWrite, since: Revision) -> PassedWriteMemory.Finding {
    state.withLock { $0.memory.begin(write, since: since) }
  }

  /// Adds a repeated request for a write under way. Returns the problem to answer with instead if too many wait, or the
  /// write has ended meanwhile; otherwise nil.
  func wait(for id: WriteID, _ completion: Completion) -> Problem? {
    state.withLock { state in
      guard state.memory.isUnderWay(id), state.waiting[id, default: []].count < Self.mostWaiting else {
        return Problem(.overloaded, "the write is being carried out; try again")
      }
      state.waiting[id, default: []].append(completion)
      return nil
    }
  }

  /// Notes that a write was sent to another peer, which has not reported the outcome.
  func doubt(_ id: WriteID) { state.withLock { $0.memory.doubt(id) } }

  /// Returns true if a write was sent to another peer that may still carry it out, even if this node refuses it.
  func isDoubtful(_ id: WriteID) -> Bool { state.withLock { $0.memory.isDoubtful(id) } }

  /// Returns the response of another node to a write that is under way here; nil if no other node has carried it out.
  func precedent(of id: WriteID) -> Response? { state.withLock { $0.memory.precedent(of: id) } }

  /// Ends a write with its response. See `PassedWriteMemory.end`.
  func end(_ id: WriteID, doneAt revision: Revision?, isRefused: Bool, _ response: Response) {
    let waiting = state.withLock { state in
      state.memory.end(id, doneAt: revision, isRefused: isRefused)
      return state.waiting.removeValue(forKey: id) ?? []
    }
    // Only the request that was carried out is handled again.
    var response = response
    response.retry = nil
    for completion in waiting { completion.respond(response) }
  }
}

/// The known outcomes of writes that nodes have forwarded: a state machine without a lock, a clock or a journal.
///
/// A write is unknown, under way, done at a revision, or refused. `begin` moves an unknown write to under way; `end`
/// moves it to done, refused, or back to unknown. `note` marks the write in a record that was read, of any node, as
/// done. If the write is under way here too, its response is kept for the writer, which returns it instead of carrying
/// out the write.
///
/// The newest writes are remembered, up to the limit, with the revision from which on they are complete. A write that
/// got its id in an older state may have been done and forgotten, so `begin` rejects it. No clock is used, so a node
/// that was suspended for a day decides as correctly as any other.
struct PassedWriteMemory: Sendable {
  /// The decision about a write that arrived.
  enum Finding: Hashable, Sendable {
    /// Carry it out, then `end` it.
    case first
    /// It is being carried out here.
    case underWay
    /// A commit has done it, and has its response in its record.
    case done(Revision)
    /// It was refused in answer to a repeated request; this is the earlier request, which was still on its way.
    case refused
    /// The name belongs to another request.
    case otherRequest
    /// It may have been done, but so long ago that this is no longer known.
    case forgotten
  }

  private enum Fate: Sendable {
    case done(Revision)
    case refused
  }

  /// The revision after which every write that was done is known.
  private var floor = Revision.max
  /// The newest revision of the writes that were forgotten.
  private var forgottenThrough: Revision = 0
  private let limit: Int
  /// The outcomes of writes, and the requests that their names belong to; nil if an earlier version carried out the
  /// write.
  private var fates: [WriteID: (fate: Fate, binding: BoundWrite.Binding?)] = [:]
  /// The ids of `fates`, in order of arrival.
  private var order: Deque<WriteID> = []
  /// Writes that were sent to another peer, which may still carry them out: the newest ones, up to the limit, in order
  /// of arrival.
  private var doubtful: Set<WriteID> = []
  private var doubtfulOrder: Deque<WriteID> = []
  /// The writes under way, with the response that was read in a record, if any.
  private var underWay: [WriteID: (binding: BoundWrite.Binding, response: Response?)] = [:]

  /// Creates a memory of `limit` writes, at least one. No write is accepted before `begin(after:)`.
  init(limit: Int) { self.limit = max(1, limit) }

  /// The number of remembered writes.
  var count: Int { fates.count }
  /// Returns true if a write is under way.
  func isUnderWay(_ id: WriteID) -> Bool { underWay[id] != nil }

  /// Begins to accept writes: every write that was done after a revision has been noted.
  mutating func begin(after revision: Revision) {
    floor = max(revision, forgottenThrough)
  }

  /// Begins a write that got its id at a revision.
  mutating func begin(_ write: BoundWrite, since: Revision) -> Finding {
    if let binding = underWay[write.id]?.binding { return binding == write.binding ? .underWay : .otherRequest }
    if let (fate, binding) = fates[write.id] {
      if let binding, binding != write.binding { return .otherRequest }
      switch fate {
      case .done(let revision): return .done(revision)
      case .refused: return .refused
      }
    }
    guard since >= floor else { return .forgotten }
    underWay[write.id] = (write.binding, nil)
    return .first
  }

  /// Notes a write in a record that was read; `response` decodes its response from the record.
  mutating func note(
    _ id: WriteID, _ binding: BoundWrite.Binding?, at revision: Revision, _ response: () -> Response?
  ) {
    if let binding, underWay[id]?.binding == binding, let response = response() {
      underWay[id]?.response = response
    }
    remember(id, binding, .done(revision))
  }

  /// Notes that a write was sent to another peer, which has not reported the outcome.
  mutating func doubt(_ id: WriteID) {
    guard doubtful.insert(id).inserted else { return }
    doubtfulOrder.append(id)
    if doubtfulOrder.count > limit, let oldest = doubtfulOrder.popFirst() { doubtful.remove(oldest) }
  }

  /// Returns true if a write was sent to another peer that may still carry it out, even if this node refuses it.
  func isDoubtful(_ id: WriteID) -> Bool { doubtful.contains(id) }

  /// Returns the response of another commit to a write that is under way; nil if no other commit has done it.
  func precedent(of id: WriteID) -> Response? { underWay[id]?.response }

  /// Ends a write that was under way: done by a commit, or not done. `isRefused` means that its client is told that it
  /// was refused while an earlier request for it may still be on its way; that request must not be carried out.
  mutating func end(_ id: WriteID, doneAt revision: Revision?, isRefused: Bool) {
    guard let (binding, _) = underWay.removeValue(forKey: id) else {
      return assertionFailure("the write is not under way")
    }
    if let revision { remember(id, binding, .done(revision)) } else if isRefused { remember(id, binding, .refused) }
  }

  private mutating func remember(_ id: WriteID, _ binding: BoundWrite.Binding?, _ fate: Fate) {
    if case .done? = fates[id]?.fate { return }
    // A write that was forgotten stays forgotten: it would displace a newer one.
    if case .done(let revision) = fate, fates[id] == nil, revision <= forgottenThrough { return }
    if fates.updateValue((fate, binding), forKey: id) == nil { order.append(id) }
    while order.count > limit, let oldest = order.popFirst() {
      guard case .done(let revision)? = fates.removeValue(forKey: oldest)?.fate else { continue }
      forgottenThrough = max(forgottenThrough, revision)
      if floor != .max { floor = max(floor, revision) }
    }
  }
}
