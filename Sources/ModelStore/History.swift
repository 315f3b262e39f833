internal import DequeModule
package import KeyValueModel

/// The last commits, as far back as the limits allow: what somebody who was away can still be told exactly.
package struct History: Sendable {
  private var commits: Deque<Commit> = []
  private var bytes = 0
  /// The last kept commit that touched an object.
  private var lastTouches: [Reference: Revision] = [:]
  private let limits: StoreLimits

  init(limits: StoreLimits) {
    self.limits = limits
  }

  /// How many commits are kept.
  package var count: Int { commits.count }

  /// The earliest revision from which one can go on, given the present one.
  package func oldestResumable(at present: Revision) -> Revision {
    commits.first.map { $0.revision - 1 } ?? present
  }

  /// The commits after `revision`, oldest first, or nil where some of them are no longer kept.
  package func commits(after revision: Revision, present: Revision) -> [Commit]? {
    guard revision >= oldestResumable(at: present), revision <= present else { return nil }
    return Array(commits.suffix(Int(present - revision)))
  }

  /// Adds the newest commit and drops the oldest while there are too many.
  mutating func append(_ commit: Commit) {
    commits.append(commit)
    bytes += commit.approximateBytes
    for entry in commit.before { lastTouches[entry.object] = commit.revision }
    while commits.count > limits.historyRevisions || bytes > limits.historyBytes, let oldest = commits.popFirst() {
      bytes -= oldest.approximateBytes
      for entry in oldest.before where lastTouches[entry.object] == oldest.revision {
        lastTouches[entry.object] = nil
      }
    }
  }

  /// Whether none of the objects was touched after `revision`, which is kept.
  func isUntouched(_ objects: some Sequence<Reference>, after revision: Revision) -> Bool {
    objects.allSatisfy { lastTouches[$0] ?? 0 <= revision }
  }
}
