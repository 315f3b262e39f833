import KeyValueModel
import KeywayServer
import Support
import Synchronization

/// The nodes that follow this one and have made requests lately, the copies of the state that nodes fetch before they
/// follow, and the records that the journal has to keep for both.
final class Followers: Sendable {
  struct Follower: Sendable {
    /// The newest revision that it has.
    var revision: Revision
    /// The time of its last request, in nanoseconds of the clock.
    var lastRequest: UInt64
    /// The nodes that follow it, directly or indirectly.
    var below: [String] = []
    fileprivate var need = Need()
  }

  /// The result of noting a follower's request.
  enum Note {
    /// The follower is known already.
    case known
    /// The follower is new, or other nodes follow it than before.
    case new
    /// There are too many other followers.
    case refused
  }

  /// The id of a copy of this node's state that another node fetches.
  struct CopyID: Hashable, Sendable {
    fileprivate let number: Int
  }

  /// The time since which the journal keeps records for one node.
  fileprivate struct Need {
    var since: (nanoseconds: UInt64, bytes: Int)?

    /// Returns true if the need counts: the records that would be forgotten up to `oldest` have been kept within the
    /// limits so far.
    mutating func counts(
      _ revision: Revision, _ oldest: Revision, _ now: UInt64, _ writtenBytes: Int,
      _ limits: ClusterOptions.JoiningLimits
    ) -> Bool {
      guard revision < oldest else {
        since = nil
        return false
      }
      let begin = since ?? (now, writtenBytes)
      since = begin
      return now - min(now, begin.nanoseconds) < UInt64(limits.seconds) * 1_000_000_000
        && writtenBytes - begin.bytes < limits.bytes
    }
  }

  private struct Copy {
    let id: CopyID
    var revision: Revision
    let begun: UInt64
    var need = Need()
  }

  private struct State {
    var followers: [String: Follower] = [:]
    var copies: [Copy] = []
    var lastCopy = 0
  }

  /// The time without a request after which a follower has gone, in nanoseconds.
  private static let memory: UInt64 = 10_000_000_000
  /// The maximum length of a follower's name, in bytes.
  static let nameBytes = 300

  private let limit: Int
  private let joining: ClusterOptions.JoiningLimits
  private let state = Locked(State())
  /// Atomic, since every request checks whether this node is alone.
  private let hadAny = Atomic(false)
  private let now: @Sendable () -> UInt64

  /// Creates an empty table of at most `limit` followers at a time. `now` returns monotonic time in nanoseconds.
  init(
    limit: Int, joining: ClusterOptions.JoiningLimits = ClusterOptions.JoiningLimits(),
    now: @escaping @Sendable () -> UInt64
  ) {
    self.limit = limit
    self.joining = joining
    self.now = now
  }

  /// True if any follower has ever made a request.
  var hasHadAny: Bool { hadAny.load(ordering: .acquiring) }

  /// The time `nanoseconds` before now, or the beginning of the clock if that is later. A follower whose last request
  /// is older than `memory` is gone.
  private static func horizon(_ nanoseconds: UInt64 = memory, before now: UInt64) -> UInt64 {
    now - min(now, nanoseconds)
  }

  /// The present followers, sorted by name.
  var present: [(name: String, follower: Follower)] {
    let horizon = Self.horizon(before: now())
    return state.withLock { $0.followers }.filter { $0.value.lastRequest >= horizon }.sorted { $0.key < $1.key }
      .map { ($0.key, $0.value) }
  }

  /// The names of the present followers, and of the nodes that follow them.
  var names: [String] { hasHadAny ? present.flatMap { [$0.name] + $0.follower.below } : [] }

  /// Returns the names of the followers that made a request in the last `nanoseconds`, and of the nodes that follow
  /// them.
  func names(activeWithin nanoseconds: UInt64) -> [String] {
    guard hasHadAny else { return [] }
    let horizon = Self.horizon(nanoseconds, before: now())
    return present.filter { $0.follower.lastRequest >= horizon }.flatMap { [$0.name] + $0.follower.below }
  }

  /// Notes that a follower has asked for the records after a revision, and which nodes follow it.
  func note(_ name: String, at revision: Revision, below: [String] = []) -> Note {
    let present = now()
    let horizon = Self.horizon(before: present)
    return state.withLock { state in
      if state.followers[name] == nil, state.followers.count >= limit {
        state.followers = state.followers.filter { $0.value.lastRequest >= horizon }
        guard state.followers.count < limit else { return .refused }
      }
      let former = state.followers[name]
      if former?.revision != revision, let copy = state.copies.firstIndex(where: { $0.revision == revision }) {
        // The copy has arrived: from now on the follower needs the records.
        state.copies.remove(at: copy)
      }
      let isKnown = former.map { $0.below == below && $0.lastRequest >= horizon } ?? false
      let need = (former?.revision ?? 0) <= revision ? former?.need : nil
      state.followers[name] = Follower(revision: revision, lastRequest: present, below: below, need: need ?? Need())
      hadAny.store(true, ordering: .releasing)
      return isKnown ? .known : .new
    }
  }

  // MARK: What the journal keeps

  /// Notes that a node begins to fetch a copy, of a revision that is not before `revision`.
  func beginCopy(after revision: Revision) -> CopyID {
    let present = now()
    return state.withLock { state in
      state.copies.removeAll { present - min(present, $0.begun) >= UInt64(joining.seconds) * 1_000_000_000 }
      // A node that fetches again and again does not displace all others.
      if state.copies.count >= max(1, limit) { state.copies.removeFirst() }
      state.lastCopy += 1
      let id = CopyID(number: state.lastCopy)
      state.copies.append(Copy(id: id, revision: revision, begun: present))
      return id
    }
  }

  /// Notes the revision of a copy: the records after it will be requested.
  func note(_ copy: CopyID, of revision: Revision) {
    state.withLock { state in
      if let index = state.copies.firstIndex(where: { $0.id == copy }) { state.copies[index].revision = revision }
    }
  }

  /// Removes a copy that could not be made.
  func end(_ copy: CopyID) { state.withLock { state in state.copies.removeAll { $0.id == copy } } }

  /// Returns the revision up to which the journal may forget its records; without followers that would be `oldest`. See
  /// `JournalNeed`.
  func forgettable(upTo oldest: Revision, _ writtenBytes: Int) -> Revision {
    let (present, limits) = (now(), joining)
    let horizon = Self.horizon(before: present)
    return state.withLock { state in
      var least = oldest
      for name in Array(state.followers.keys) {
        guard var follower = state.followers[name], follower.lastRequest >= horizon else { continue }
        if follower.need.counts(follower.revision, oldest, present, writtenBytes, limits) {
          least = min(least, follower.revision)
        }
        state.followers[name] = follower
      }
      for index in state.copies.indices {
        let revision = state.copies[index].revision
        if state.copies[index].need.counts(revision, oldest, present, writtenBytes, limits) {
          least = min(least, revision)
        }
      }
      return least
    }
  }
}
