import KeyValueModel
import Locking

/// The nodes that follow this one, as far as they were heard lately.
final class Followers: Sendable {
  struct Follower: Sendable {
    /// What it has.
    var revision: Revision
    /// When it asked last, in nanoseconds of the clock.
    var heard: UInt64
    /// The nodes that follow it, or one that does.
    var below: [String] = []
  }

  /// What came of a follower's request.
  enum Note {
    /// It is known already.
    case known
    /// It is new, or others follow it than before.
    case new
    /// There are too many others.
    case refused
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

  /// The names of those that are there now, and of the nodes that follow them.
  var names: [String] { wasHeard ? present.flatMap { [$0.name] + $0.follower.below } : [] }

  /// Notes that one has asked for what comes after a revision, and which nodes follow it.
  func note(_ name: String, at revision: Revision, below: [String] = []) -> Note {
    let present = now()
    return state.withLock { state in
      if state.followers[name] == nil, state.followers.count >= limit {
        state.followers = state.followers.filter { $0.value.heard >= present &- Self.memory }
        guard state.followers.count < limit else { return .refused }
      }
      let former = state.followers[name]
      let isKnown = former.map { $0.below == below && $0.heard >= present &- Self.memory } ?? false
      state.followers[name] = Follower(revision: revision, heard: present, below: below)
      state.wasHeard = true
      return isKnown ? .known : .new
    }
  }
}
