package import KeyValueModel

/// What is published at one moment, with the commits that led there. Taken in no time under the publication's lock, and
/// read while others write.
package struct PublishedHistory: Sendable {
  /// What is published.
  package let snapshot: Snapshot
  private let commits: CommitList

  init(snapshot: Snapshot, commits: CommitList) {
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
