package import KeyValueModel
import KeyValueObserving
import Support

/// What makes the work for two clients that resume a live query the same.
struct ResumedQueryKey: Hashable, Sendable {
  let query: Query
  let after: Revision
}

extension PreparedQuery {
  /// A query as it was at a revision, with what became of it since. Throws `malformed-filter` where it costs more than
  /// `cost`, which is spent from.
  init(
    _ query: Query, _ missed: MissedCommits, limits: StoreLimits, cost: inout Int, _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    let live = try LiveQuery(query, in: missed.past, cost: &cost, isAbandoned)
    self.init(live, at: missed.after, missed.snapshot, isPast: true, limits: limits)
    bringUp(through: missed.commits, to: missed.snapshot, from: missed.past)
  }
}

extension Store {
  /// How many revisions old what is kept for resuming clients may become: it keeps the objects of its time alive.
  private static let resumedAge: Revision = 1000

  /// Prepares queries for a client that resumes after a revision, or brings what was prepared up to the published
  /// history: what they were then, and what became of them since. Uses what was prepared for another client and given
  /// back. Leaves out those of which that is no longer known. Throws `malformed-filter` where they cost more than
  /// `request.steps` together, or `isAbandoned` says that they are no longer wanted.
  package func prepare(
    _ queries: some Collection<Query>, after revision: Revision, _ publishedHistory: PublishedHistory,
    _ prepared: inout [Query: PreparedQuery], _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    var cost = limits.queryOpeningCost
    for query in Set(queries) {
      let key = ResumedQueryKey(query: query, after: revision)
      let known = prepared.removeValue(forKey: query) ?? resumedQueries.withLock { $0.take(key) }
      if var entry = known,
        entry.revision >= publishedHistory.snapshot.revision || publishedHistory.commits(after: entry.revision) != nil
      {
        bringUp(&entry, to: publishedHistory)
        prepared[query] = entry
      } else if let missed = missed(after: revision, publishedHistory) {
        var entry = try PreparedQuery(query, missed, limits: limits, cost: &cost, isAbandoned)
        bringUp(&entry, to: publishedHistory)
        prepared[query] = entry
      }
    }
  }

  private func bringUp(_ entry: inout PreparedQuery, to publishedHistory: PublishedHistory) {
    guard entry.revision < publishedHistory.snapshot.revision,
      let commits = publishedHistory.commits(after: entry.revision)
    else { return }
    entry.bringUp(through: commits, to: publishedHistory.snapshot)
  }

  /// Keeps what was prepared for a client that resumed after a revision for the next that do, for a while. Not what is
  /// observed now: the writer would copy its rows.
  package func giveBack(_ prepared: [Query: PreparedQuery], after revision: Revision) {
    for (query, entry) in prepared where entry.failure == nil && entry.past != nil {
      let key = ResumedQueryKey(query: query, after: revision)
      let weight = entry.rowCount + entry.contents.reduce(1) { $0 + $1.changes.count }
      resumedQueries.withLock { $0.put(entry, for: key, at: entry.revision, weight: weight) }
    }
  }

  /// Keeps nothing any longer that is old by now.
  func forgetResumed(at present: Revision) {
    guard present > Self.resumedAge else { return }
    missedCommits.withLock { $0.forget(before: present - Self.resumedAge) }
    resumedQueries.withLock { $0.forget(before: present - Self.resumedAge) }
  }
}
