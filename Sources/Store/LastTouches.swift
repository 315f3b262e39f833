import KeyValueModel

/// The last commit that wrote each object, or bracketed one of its keys, as far as it is of use.
///
/// Two tables by age, of which the older one goes as a whole once all its commits are forgotten: to take out what one
/// commit touched would hold the writer up where that was thousands of objects. Memory: what was touched in at most
/// twice as many commits as are kept.
struct LastTouches: Sendable {
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
