import DequeModule
package import KeyValueModel

/// The last commits, as far back as the limits allow: what a resuming client can still receive exactly.
package struct History: Sendable {
  /// The commits themselves, to be read on while others write.
  fileprivate private(set) var commits = CommitList()
  /// When each of them was made, in milliseconds since 1970, and the bytes that it takes.
  private var accounts: Deque<(milliseconds: Int64, bytes: Int)> = []
  /// The time of the newest commit, kept or not, in milliseconds since 1970; nil before the first.
  private(set) var lastTime: Int64?
  private var bytes = 0
  /// The bytes of all commits that were ever added.
  private(set) var writtenBytes = 0
  private var lastTouches = LastTouches()
  private let limits: StoreLimits

  init(limits: StoreLimits) {
    self.limits = limits
  }

  /// How many commits are kept.
  package var count: Int { commits.count }

  /// The earliest revision from which one can go on, given the present one.
  package func oldestResumable(at present: Revision) -> Revision {
    commits.oldest.map { $0.revision - 1 } ?? present
  }

  /// The commits after `revision`, oldest first, or nil where some of them are no longer kept.
  package func commits(after revision: Revision, present: Revision) -> [Commit]? {
    commits.after(revision, present: present)
  }

  /// A commit of more bytes takes long to free: it is of hundreds of objects.
  private static let largeBytes = 1 << 16

  /// Adds the newest commit and drops the oldest while there are too many. Gives what it has dropped that takes long to
  /// free, so that the caller can do that where nobody waits for it.
  @discardableResult
  mutating func append(_ commit: Commit, milliseconds: Int64) -> [any Sendable] {
    lastTime = milliseconds
    let size = commit.approximateBytes
    commits.append(commit)
    accounts.append((milliseconds, size))
    bytes += size
    writtenBytes += size
    lastTouches.note(commit)
    var dropped: [any Sendable] = []
    while commits.count > limits.historyRevisions || bytes > limits.historyBytes {
      let before = bytes
      guard let oldest = dropOldest() else { break }
      if before - bytes > Self.largeBytes { dropped.append(oldest) }
    }
    trim(at: milliseconds)
    if let forgotten = lastTouches.forget(before: commits.oldest?.revision ?? .max) { dropped.append(forgotten) }
    return dropped
  }

  /// Drops what has become too old. True where something was dropped.
  @discardableResult
  mutating func trim(at milliseconds: Int64) -> Bool {
    guard limits.historySeconds > 0 else { return false }
    let count = commits.count
    let horizon = milliseconds - Int64(limits.historySeconds) * 1000
    while let oldest = accounts.first, oldest.milliseconds < horizon { dropOldest() }
    return commits.count < count
  }

  @discardableResult
  private mutating func dropOldest() -> Commit? {
    guard let oldest = commits.popFirst(), let account = accounts.popFirst() else { return nil }
    bytes -= account.bytes
    return oldest
  }

  /// Whether no observer of these objects can have been notified after `revision`, which is kept: none was written, and
  /// no key of them bracketed.
  package func isUntouched(_ objects: some Sequence<Reference>, after revision: Revision) -> Bool {
    objects.allSatisfy { lastTouches.isUntouched($0, after: revision) }
  }
}

/// What is published at one moment, with the commits that led there. Taken in no time under the publication's lock, and
/// read while others write.
package struct PublishedHistory: Sendable {
  /// What is published.
  package let snapshot: Snapshot
  private let commits: CommitList

  fileprivate init(snapshot: Snapshot, commits: CommitList) {
    self.snapshot = snapshot
    self.commits = commits
  }

  /// The commits after `revision`, oldest first, or nil where some of them are not kept. Costs what it gives.
  package func commits(after revision: Revision) -> [Commit]? {
    commits.after(revision, present: snapshot.revision)
  }
}

extension Publication {
  /// What is published now.
  package var publishedHistory: PublishedHistory { PublishedHistory(snapshot: snapshot, commits: history.commits) }
}

/// Consecutive commits, oldest first, of which both ends move. A value: a copy costs three references, and appending
/// while there is a copy copies a segment, not all of them.
private struct CommitList: Sendable {
  private static let segmentLength = 64

  /// What is left of the oldest segment.
  private var first: Deque<Commit> = []
  /// Whole segments.
  private var middle: Deque<[Commit]> = []
  /// The newest segment as far as it goes.
  private var last: [Commit] = []
  /// How many commits there are.
  private(set) var count = 0

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

/// The last commit that wrote each object, or bracketed one of its keys, as far as it is of use.
///
/// Two tables by age, of which the older one goes as a whole once all its commits are forgotten: to take out what one
/// commit touched would hold the writer up where that was thousands of objects. Memory: what was touched in at most
/// twice as many commits as are kept.
private struct LastTouches: Sendable {
  private var newer: [Reference: Revision] = [:]
  private var older: [Reference: Revision] = [:]
  /// The last commits that were noted, and that the older table has.
  private var (newest, olderNewest): (Revision, Revision) = (0, 0)

  /// Nothing was touched.
  init() {}

  /// Notes what the newest commit touches.
  mutating func note(_ commit: Commit) {
    newest = commit.revision
    commit.forEachTouchedObject { newer[$0] = commit.revision }
  }

  /// Nobody asks for commits before `oldest` any more. Gives what is to be freed, where that is a table; O(1).
  mutating func forget(before oldest: Revision) -> [Reference: Revision]? {
    guard oldest > olderNewest else { return nil }
    let forgotten = older
    older = newer
    olderNewest = newest
    newer = Dictionary(minimumCapacity: older.count)
    return forgotten.isEmpty ? nil : forgotten
  }

  /// Whether no commit after `revision`, which is one that is asked for, touched an object.
  func isUntouched(_ object: Reference, after revision: Revision) -> Bool {
    (newer[object] ?? older[object] ?? 0) <= revision
  }
}
