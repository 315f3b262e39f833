import Support
import TestKit

/// Where clients reach one node, and the newest state that its present life has shown: its answers never go back.
final class NodeDoor: Sendable {
  private struct State {
    /// Odd while the node is down.
    var life = 0
    var newest = 0
    var isForRefusals = false
  }

  /// What a client knows of a node when it asks.
  struct Mark: Hashable, Sendable {
    fileprivate var life: Int
    fileprivate var newest: Int
  }

  /// The number of the node, from 0.
  let node: Int
  /// The port of 127.0.0.1 that it serves.
  let port: UInt16
  private let state = Locked(State(life: 1))

  init(node: Int, port: UInt16) { (self.node, self.port) = (node, port) }

  /// The node is about to be started, or has just been ended.
  func turn() {
    state.withLock { state in
      state.life += 1
      state.newest = 0
    }
  }

  /// Whether clients are to ask it for nothing but what has to be refused. A write that the node cannot append would
  /// keep it from judging any other.
  var isForRefusals: Bool {
    get { state.withLock { $0.isForRefusals } }
    set { state.withLock { $0.isForRefusals = newValue } }
  }

  /// Something is about to be asked.
  func mark() -> Mark { state.withLock { Mark(life: $0.life, newest: $0.newest) } }

  /// Takes the answer to what was asked at a mark; gives what is wrong with it.
  func take(_ response: WireResponse, since mark: Mark) -> String? {
    // What cannot be answered is judged by no state, and an answer given once more by that of the first time.
    guard response.status != 503, response["Idempotency-Replayed"] == nil, let cursor = Cursor(of: response) else {
      return nil
    }
    return state.withLock { state in
      guard state.life == mark.life, state.life.isMultiple(of: 2) else { return nil }
      state.newest = max(state.newest, cursor.revision)
      return cursor.revision < mark.newest
        ? "node \(node) answered from revision \(cursor.revision), and before from \(mark.newest)" : nil
    }
  }
}
