import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support

/// Writes that other nodes have passed on to this one, and what became of them.
///
/// `state` is all that changes, under its lock, which is held for a look; nothing is answered inside it.
final class PassedWrites: Sendable {
  private struct State {
    var memory: PassedWriteMemory
    /// Those who asked for a write that is under way.
    var waiting: [PassedWrite.ID: [Completion]] = [:]
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
  func wait(for id: PassedWrite.ID, _ completion: Completion) -> Problem? {
    state.withLock { state in
      guard state.memory.isUnderWay(id), state.waiting[id, default: []].count < Self.mostWaiting else {
        return Problem(.overloaded, "the write is being carried out; ask again")
      }
      state.waiting[id, default: []].append(completion)
      return nil
    }
  }

  /// Another peer was sent a write, and has not said what became of it.
  func doubt(_ id: PassedWrite.ID) { state.withLock { $0.memory.doubt(id) } }

  /// Whether another peer was sent a write and may still do it, whatever is refused here.
  func isDoubtful(_ id: PassedWrite.ID) -> Bool { state.withLock { $0.memory.isDoubtful(id) } }

  /// What another node has answered to a write that is under way here; nil where none has.
  func precedent(of id: PassedWrite.ID) -> Response? { state.withLock { $0.memory.precedent(of: id) } }

  /// A write is over, with a response. See `PassedWriteMemory.end`.
  func end(_ id: PassedWrite.ID, doneAt revision: Revision?, isRefused: Bool, _ response: Response) {
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
