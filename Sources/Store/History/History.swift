import DequeModule
package import KeyValueModel

/// The most recent commits, as far back as the limits allow, from which a client can resume without a gap.
package struct History: Sendable {
  /// The commits themselves, which can be read while others write.
  fileprivate private(set) var commits = CommitList()
  /// The time of each commit, in milliseconds since 1970, and its size in bytes.
  private var accounts: Deque<(milliseconds: Int64, bytes: Int)> = []
  /// The time of the newest commit, whether or not it is still kept, in milliseconds since 1970; nil before the first
  /// commit.
  private(set) var lastTime: Int64?
  private var bytes = 0
  /// The total size in bytes of all commits that were ever added.
  private(set) var writtenBytes = 0
  private var lastTouches = LastTouches()
  private let limits: StoreLimits

  init(limits: StoreLimits) {
    self.limits = limits
  }

  /// The number of commits kept.
  package var count: Int { commits.count }

  /// Returns the earliest revision from which a client can resume, given the current one.
  package func oldestResumable(at present: Revision) -> Revision {
    commits.oldest.map { $0.revision - 1 } ?? present
  }

  /// Returns the commits after `revision`, oldest first, or nil if some of them are no longer kept.
  package func commits(after revision: Revision, present: Revision) -> [Commit]? {
    commits.after(revision, present: present)
  }

  /// The size in bytes above which a commit takes long to free: such a commit has hundreds of objects.
  private static let largeBytes = 1 << 16

  /// Adds the newest commit and drops the oldest commits while a limit is exceeded. Returns the dropped values that
  /// take long to free, so that the caller can free them where no one waits.
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

  /// Drops the commits that are too old. Returns true if any were dropped.
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

  /// Returns true if no observer of these objects can have been notified after `revision`, which must still be kept:
  /// none of the objects was written, and no key of theirs was bracketed.
  package func isUntouched(_ objects: some Sequence<Reference>, after revision: Revision) -> Bool {
    objects.allSatisfy { lastTouches.isUntouched($0, after: revision) }
  }
}

/// The published snapshot at one moment, with the commits that led to it. Cheap to take under the publication's lock,
/// and can be read while others write.
package struct PublishedHistory: Sendable {
  /// The published snapshot.
  package let snapshot: Snapshot
  private let commits: CommitList

  fileprivate init(snapshot: Snapshot, commits: CommitList) {
    self.snapshot = snapshot
    self.commits = commits
  }

  /// Returns the commits after `revision`, oldest first, or nil if some of them are not kept. O(n) in the commits
  /// returned.
  package func commits(after revision: Revision) -> [Commit]? {
    commits.after(revision, present: snapshot.revision)
  }
}

extension Publication {
  /// The current snapshot with the commits that led to it.
  package var publishedHistory: PublishedHistory { PublishedHistory(snapshot: snapshot, commits: history.commits) }
}

/// Consecutive commits, oldest first, that can be appended and removed from the front. A value type: a copy costs three
/// references, and appending while a copy exists copies one segment, not all of them.
private struct CommitList: Sendable {
  private static let segmentLength = 64

  /// The rest of the oldest segment.
  private var first: Deque<Commit> = []
  /// The full segments.
  private var middle: Deque<[Commit]> = []
  /// The newest segment, which is not full yet.
  private var last: [Commit] = []
  /// The number of commits.
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

  /// Removes and returns the oldest commit.
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

  /// Returns the newest `length` commits, or all if there are fewer. O(n) in the commits returned.
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

  /// Returns the commits after `revision`, or nil if some of them are missing. `present` is the revision of the newest
  /// commit.
  func after(_ revision: Revision, present: Revision) -> [Commit]? {
    guard revision <= present, present - revision <= UInt64(count) else { return nil }
    return suffix(Int(present - revision))
  }
}

/// The last commit that wrote each object or bracketed one of its keys, as far back as the history reaches.
///
/// Keeps two tables by age and frees the older one as a whole once all its commits are forgotten: removing the objects
/// of one commit would delay the writer if there were thousands of them. The tables hold the objects touched by at most
/// twice as many commits as are kept.
private struct LastTouches: Sendable {
  private var newer: [Reference: Revision] = [:]
  private var older: [Reference: Revision] = [:]
  /// The revision of the newest commit noted, and of the newest commit in the older table.
  private var (newest, olderNewest): (Revision, Revision) = (0, 0)

  /// Creates empty tables.
  init() {}

  /// Records the objects that the newest commit touches.
  mutating func note(_ commit: Commit) {
    newest = commit.revision
    commit.forEachTouchedObject { newer[$0] = commit.revision }
  }

  /// Notes that commits before `oldest` will not be asked for again. Returns the table to free, if any. O(1).
  mutating func forget(before oldest: Revision) -> [Reference: Revision]? {
    guard oldest > olderNewest else { return nil }
    let forgotten = older
    older = newer
    olderNewest = newest
    newer = Dictionary(minimumCapacity: older.count)
    return forgotten.isEmpty ? nil : forgotten
  }

  /// Returns true if no commit after `revision` touched an object. The revision must not be forgotten.
  func isUntouched(_ object: Reference, after revision: Revision) -> Bool {
    (newer[object] ?? older[object] ?? 0) <= revision
  }
}
