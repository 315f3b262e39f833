import DequeModule
import KeyValueModel

/// Consecutive commits, oldest first, of which both ends move. A value: a copy costs three references, and appending
/// while there is a copy copies a segment, not all of them.
struct CommitList: Sendable {
  private static let segmentLength = 64

  /// What is left of the oldest segment.
  private var first: Deque<Commit> = []
  /// Whole segments.
  private var middle: Deque<[Commit]> = []
  /// The newest segment as far as it goes.
  private var last: [Commit] = []
  /// How many commits there are.
  private(set) var count = 0

  /// No commits.
  init() {}

  /// The oldest commit.
  var oldest: Commit? { first.first ?? middle.first?.first ?? last.first }

  /// Adds the newest commit.
  mutating func append(_ commit: Commit) {
    last.append(commit)
    count += 1
    guard last.count == Self.segmentLength else { return }
    middle.append(last)
    last = []
  }

  /// Takes the oldest commit away.
  mutating func popFirst() -> Commit? {
    if first.isEmpty {
      if let segment = middle.popFirst() {
        first = Deque(segment)
      } else {
        first = Deque(last)
        last = []
      }
    }
    guard let commit = first.popFirst() else { return nil }
    count -= 1
    return commit
  }

  /// The newest `length` commits, or all where there are fewer. Costs what it gives.
  func suffix(_ length: Int) -> [Commit] {
    if length <= last.count { return last.suffix(length) }
    var pieces = [last[...]]
    var missing = min(length, count) - last.count
    for segment in middle.reversed() where missing > 0 {
      pieces.append(segment.suffix(missing))
      missing -= min(missing, segment.count)
    }
    var commits: [Commit] = []
    commits.reserveCapacity(min(length, count))
    commits += first.suffix(missing)
    for piece in pieces.reversed() { commits += piece }
    return commits
  }

  /// The commits after `revision`, or nil where some of them are not there; `present` is the revision of the newest.
  func after(_ revision: Revision, present: Revision) -> [Commit]? {
    guard revision <= present, present - revision <= UInt64(count) else { return nil }
    return suffix(Int(present - revision))
  }
}
