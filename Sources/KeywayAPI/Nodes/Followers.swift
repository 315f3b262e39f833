import KeyValueModel
import Locking

/// The nodes that follow this one, as far as they were heard lately.
final class Followers: Sendable {
  struct Follower: Sendable {
    /// What it has.
    var revision: Revision
    /// When it asked last, in nanoseconds of the clock.
    var heard: UInt64
  }

  private struct State {
    var followers: [String: Follower] = [:]
    var wasHeard = false
  }

  /// After so long without a request one has gone, in nanoseconds.
  private static let memory: UInt64 = 10_000_000_000
  /// The longest name that one has, in bytes.
  static let nameBytes = 300

  private let limit: Int
  private let state = Locked(State())
  private let now: @Sendable () -> UInt64

  /// None was heard yet; at most `limit` can be at a time. `now` gives nanoseconds that only grow.
  init(limit: Int, now: @escaping @Sendable () -> UInt64) {
    self.limit = limit
    self.now = now
  }

  /// Whether one was ever heard.
  var wasHeard: Bool { state.withLock { $0.wasHeard } }

  /// Those that are there now, by name.
  var present: [(name: String, follower: Follower)] {
    let horizon = now() &- Self.memory
    return state.withLock { $0.followers }.filter { $0.value.heard >= horizon }.sorted { $0.key < $1.key }
      .map { ($0.key, $0.value) }
  }

  /// Notes that one has asked for what comes after a revision. False where there are too many others.
  func note(_ name: String, at revision: Revision) -> Bool {
    let present = now()
    return state.withLock { state in
      if state.followers[name] == nil, state.followers.count >= limit {
        state.followers = state.followers.filter { $0.value.heard >= present &- Self.memory }
        guard state.followers.count < limit else { return false }
      }
      state.followers[name] = Follower(revision: revision, heard: present)
      state.wasHeard = true
      return true
    }
  }
}
