import DequeModule
package import KeyValueModel

/// The last commits, as far back as the limits allow: what a resuming client can still receive exactly.
package struct History: Sendable {
  /// The commits themselves, to be read on while others write.
  private(set) var commits = CommitList()
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

  /// About how many bytes they take.
  package var byteCount: Int { bytes }

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
