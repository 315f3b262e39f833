package import KeyValueModel
import Support

/// What was committed after a revision, and the objects as they were then: immutable, and the same for all who come
/// back to that revision.
package final class MissedCommits: Sendable {
  /// The revision.
  package let after: Revision
  /// What the commits led to.
  package let snapshot: Snapshot
  /// The commits, oldest first.
  package let commits: [Commit]
  private let statesBefore = Locked<PastState?>(nil)

  /// The objects before them. Worked out when it is first asked for, which costs what was written since.
  package var past: PastState {
    statesBefore.withLock { known in
      let past = known ?? PastState(before: commits, of: snapshot.state)
      known = past
      return past
    }
  }

  /// What happened after a revision; nil where some of it is not kept. Costs a reference for
  /// each commit.
  package init?(after revision: Revision, _ publishedHistory: PublishedHistory) {
    guard let commits = publishedHistory.commits(after: revision) else { return nil }
    after = revision
    snapshot = publishedHistory.snapshot
    self.commits = commits
  }
}

extension Store {
  /// How many revisions shared results may be behind: their user goes through the rest itself.
  private static let sharedLag: Revision = 64

  /// What happened after a revision up to about the published one, a little before or after it: shared by clients that
  /// ask for the same at about the same time. Nil where the history does not reach back so far.
  package func missed(after revision: Revision, _ publishedHistory: PublishedHistory) -> MissedCommits? {
    if let known = missedCommits.withLock({ $0.item(for: revision) }),
      known.snapshot.revision + Self.sharedLag >= publishedHistory.snapshot.revision
    {
      return known
    }
    guard let missed = MissedCommits(after: revision, publishedHistory) else { return nil }
    missedCommits.withLock { cache in
      _ = cache.take(revision)
      cache.put(missed, for: revision, at: missed.snapshot.revision, weight: missed.commits.count + 1)
    }
    return missed
  }
}
