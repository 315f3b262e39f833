import DequeModule
import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Store
import Support

/// Writes that other nodes have passed on to this one, and what became of them.
///
/// `state` is all that changes, under its lock, which is held for a look; nothing is answered inside it.
final class PassedWrites: Sendable {
  private struct State {
    var memory: PassedWriteMemory
    /// Those who asked for a write that is under way.
    var waiting: [WriteID: [Completion]] = [:]
  }

  private let state: Locked<State>
  /// The most who wait for one write.
  private static let mostWaiting = 16

  /// Remembers so many.
  init(limit: Int) { state = Locked(State(memory: PassedWriteMemory(limit: limit))) }

  /// How many are remembered.
  var count: Int { state.withLock { $0.memory.count } }

  /// From now on writes are taken: everything that was kept with commits after a revision is known.
  func begin(after revision: Revision) { state.withLock { $0.memory.begin(after: revision) } }

  /// What stands in records that were read, oldest first.
  func restore(_ attachments: [StoredAttachment]) {
    state.withLock { state in
      for attachment in attachments {
        guard let (id, binding) = PassedAttachment.name(in: attachment.bytes) else { continue }
        state.memory.note(id, binding, at: attachment.revision) { PassedAttachment(attachment.bytes)?.stored.response }
      }
    }
  }

  /// A write came that got its id at a revision.
  func begin(_ write: BoundWrite, since: Revision) -> PassedWriteMemory.Finding {
    state.withLock { $0.memory.begin(write, since: since) }
  }

  /// Adds one who asked for a write that is under way; what it is answered otherwise, where too many wait, or it has
  /// ended meanwhile.
  func wait(for id: WriteID, _ completion: Completion) -> Problem? {
    state.withLock { state in
      guard state.memory.isUnderWay(id), state.waiting[id, default: []].count < Self.mostWaiting else {
        return Problem(.overloaded, "the write is being carried out; ask again")
      }
      state.waiting[id, default: []].append(completion)
      return nil
    }
  }

  /// Another peer was sent a write, and has not said what became of it.
  func doubt(_ id: WriteID) { state.withLock { $0.memory.doubt(id) } }

  /// Whether another peer was sent a write and may still do it, whatever is refused here.
  func isDoubtful(_ id: WriteID) -> Bool { state.withLock { $0.memory.isDoubtful(id) } }

  /// What another node has answered to a write that is under way here; nil where none has.
  func precedent(of id: WriteID) -> Response? { state.withLock { $0.memory.precedent(of: id) } }

  /// A write is over, with a response. See `PassedWriteMemory.end`.
  func end(_ id: WriteID, doneAt revision: Revision?, isRefused: Bool, _ response: Response) {
    let waiting = state.withLock { state in
      state.memory.end(id, doneAt: revision, isRefused: isRefused)
      return state.waiting.removeValue(forKey: id) ?? []
    }
    // A request that is handled once more is the one that was carried out.
    var response = response
    response.retry = nil
    for completion in waiting { completion.respond(response) }
  }
}

/// What is known of writes that nodes have passed on: a state machine without lock, clock or journal.
///
/// A write is unknown, under way, done at a revision, or refused. `begin` makes an unknown one that is under way; `end`
/// makes it done, refused, or unknown again. `note` makes done what stands in a record that was read, of any node;
/// where it is under way here too, its response is kept for the writer, which gives it in place of doing it.
///
/// The newest writes are remembered, so many of them, and the revision from which on that is all of them. A write that
/// got its id in an older state may have been done and forgotten: `begin` does not take it. So no clock is asked, and
/// a node that slept for a day is as right as any other.
struct PassedWriteMemory: Sendable {
  /// What to do with a write.
  enum Finding: Hashable, Sendable {
    /// Carry it out, then `end` it.
    case first
    /// It is being carried out here.
    case underWay
    /// A commit has done it, which has its response.
    case done(Revision)
    /// It was refused, to who asked again; this is the request that was on its way meanwhile.
    case refused
    /// The name stands for another request.
    case otherRequest
    /// It may have been done, so long ago that it is no longer known.
    case forgotten
  }

  private enum Fate: Sendable {
    case done(Revision)
    case refused
  }

  /// Every write is known that was done after this revision.
  private var floor = Revision.max
  /// The newest revision of what was forgotten.
  private var forgottenThrough: Revision = 0
  private let limit: Int
  /// The fates of writes, and the requests that their names stand for; nil if an earlier version has done the write.
  private var fates: [WriteID: (fate: Fate, binding: BoundWrite.Binding?)] = [:]
  /// The ids of `fates`, in the order in which they came.
  private var order: Deque<WriteID> = []
  /// Writes that another peer was sent, and may still do: the newest, so many of them, in the order in which they came.
  private var doubtful: Set<WriteID> = []
  private var doubtfulOrder: Deque<WriteID> = []
  /// Those under way, with the response that was read in a record.
  private var underWay: [WriteID: (binding: BoundWrite.Binding, response: Response?)] = [:]

  /// A memory of so many writes, at least one. Nothing is taken before `begin(after:)`.
  init(limit: Int) { self.limit = max(1, limit) }

  /// How many are remembered.
  var count: Int { fates.count }
  /// Whether a write is under way.
  func isUnderWay(_ id: WriteID) -> Bool { underWay[id] != nil }

  /// Every write is noted that was done after a revision: what there is to know from now on.
  mutating func begin(after revision: Revision) {
    floor = max(revision, forgottenThrough)
  }

  /// A write came that got its id at a revision.
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

  /// A record has been read in which a write stands; `response` reads it there.
  mutating func note(
    _ id: WriteID, _ binding: BoundWrite.Binding?, at revision: Revision, _ response: () -> Response?
  ) {
    if let binding, underWay[id]?.binding == binding, let response = response() {
      underWay[id]?.response = response
    }
    remember(id, binding, .done(revision))
  }

  /// Another peer was sent a write, and has not said what became of it.
  mutating func doubt(_ id: WriteID) {
    guard doubtful.insert(id).inserted else { return }
    doubtfulOrder.append(id)
    if doubtfulOrder.count > limit, let oldest = doubtfulOrder.popFirst() { doubtful.remove(oldest) }
  }

  /// Whether another peer was sent a write and may still do it, whatever is refused here.
  func isDoubtful(_ id: WriteID) -> Bool { doubtful.contains(id) }

  /// What another commit has answered to a write that is under way; nil where none has done it.
  func precedent(of id: WriteID) -> Response? { underWay[id]?.response }

  /// A write that was under way is over: done by a commit, or not done. `isRefused` says that its client is told so,
  /// while an earlier request for it may still be on its way, which then must not do it.
  mutating func end(_ id: WriteID, doneAt revision: Revision?, isRefused: Bool) {
    guard let (binding, _) = underWay.removeValue(forKey: id) else {
      return assertionFailure("the write is not under way")
    }
    if let revision { remember(id, binding, .done(revision)) } else if isRefused { remember(id, binding, .refused) }
  }

  private mutating func remember(_ id: WriteID, _ binding: BoundWrite.Binding?, _ fate: Fate) {
    if case .done? = fates[id]?.fate { return }
    // One that was forgotten already stays so: it would take the place of a newer one.
    if case .done(let revision) = fate, fates[id] == nil, revision <= forgottenThrough { return }
    if fates.updateValue((fate, binding), forKey: id) == nil { order.append(id) }
    while order.count > limit, let oldest = order.popFirst() {
      guard case .done(let revision)? = fates.removeValue(forKey: oldest)?.fate else { continue }
      forgottenThrough = max(forgottenThrough, revision)
      if floor != .max { floor = max(floor, revision) }
    }
  }
}
