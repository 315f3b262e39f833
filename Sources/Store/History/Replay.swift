package import KeyValueModel
package import KeyValueObserving
import Support

/// The notifications that an uninterrupted observer would have received after a revision, as far as they have been
/// delivered. Computed while others write, and brought up to date when the observer is registered. A value that depends
/// only on the commits it is given.
package struct Replay: Sendable {
  /// The last revision whose changes were delivered.
  package private(set) var revision: Revision
  /// The names of the groups that are left out because one of their objects did not exist at the revision where they
  /// begin.
  package private(set) var absent: [String?] = []
  private var index = ObserverIndex()
  /// True if following the collections would exceed the limit because they have too many members.
  private var isTooLarge: Bool { index.isOverLimit }
  /// The steps that evaluation may still take for all commits together.
  private var budget: ObservationBudget
  /// The observations added to the index; some may have ended with their objects.
  private var observations: [Observation] = []

  /// A group of observations that begins at a later revision than the others. It may have the name of a group that has
  /// ended by then.
  package typealias Later = (since: Revision, name: String?, observations: [Observation])

  /// Delivers the missed changes to `receive`. `cells` names the groups of observations as `ObserverIndex.add` does.
  /// `limits` bounds the events as in regular delivery, and evaluation takes at most `steps`, which defaults to the
  /// steps of a request: an overflowed event means that this was not enough.
  package init(
    _ cells: [(name: String?, observations: [Observation])], later: [Later] = [], _ missed: MissedCommits,
    limits: StoreLimits, steps: Int? = nil, receive: (ObserverEvent) -> Void
  ) {
    let steps = steps ?? limits.queryOpeningCost
    let present = missed.snapshot.state
    revision = missed.snapshot.revision
    budget = ObservationBudget(steps: steps)
    index.limitLinks(to: steps / ObservationBudget.stepsPerLink)
    let concerning =
      later.isEmpty
      ? Observation.commits(missed.commits, concerning: cells.lazy.flatMap(\.observations), in: present) : nil
    var past = concerning.map { PastState(before: $0, of: present) } ?? missed.past
    add(cells, in: past)
    var rest = (concerning ?? missed.commits)[...]
    func tell(_ commits: ArraySlice<Commit>, _ index: inout ObserverIndex) {
      guard !index.isOverLimit else { return }
      budget = index.notify(
        commits, of: present, from: past, changesPerObserver: limits.changesPerObserver,
        bytesPerObserver: limits.bytesPerObserver, budget: budget, receive: receive)
    }
    for since in Set(later.map(\.since)).sorted() {
      let portion = rest.prefix { $0.revision <= since }
      tell(portion, &index)
      rest = rest.dropFirst(portion.count)
      for commit in portion { past.apply(commit) }
      add(later.filter { $0.since == since }.map { (name: $0.name, observations: $0.observations) }, in: past)
    }
    tell(rest, &index)
    if isTooLarge { receive(overflow) }
  }

  /// The event that replaces all changes if finding them would have taken too long.
  private var overflow: ObserverEvent {
    ObserverEvent(
      observer: ObserverID(0), revision: revision, writer: nil, changes: [], gone: [], hasOverflowed: true,
      isTooLong: true)
  }

  /// Adds groups of observations, or records a group as absent if one of its objects does not exist.
  private mutating func add(
    _ cells: some Sequence<(name: String?, observations: [Observation])>, in past: PastState
  ) {
    for cell in cells {
      if cell.observations.contains(where: { !past.exists($0.object, for: $0.viewer) }) {
        absent.append(cell.name)
      } else if !isTooLarge {
        index.add(cell.observations, of: ObserverID(0), cell: cell.name, in: past)
        observations += cell.observations
      }
    }
  }

  /// Delivers the changes of the commits that follow on `revision` and led to `present`.
  package mutating func bringUp(
    through commits: [Commit], to present: ModelState, limits: StoreLimits, receive: (ObserverEvent) -> Void
  ) {
    guard let last = commits.last else { return }
    assert(commits.first?.revision == revision + 1)
    revision = last.revision
    budget = index.notify(
      Observation.commits(commits, concerning: observations, in: present) ?? commits, of: present,
      changesPerObserver: limits.changesPerObserver, bytesPerObserver: limits.bytesPerObserver, budget: budget,
      receive: receive)
  }
}

/// The commits after a revision, and the objects as they were then: immutable, and shared by all clients that resume
/// from that revision.
package final class MissedCommits: Sendable {
  /// The revision that the commits follow.
  package let after: Revision
  /// The snapshot that the commits led to.
  package let snapshot: Snapshot
  /// The commits, oldest first.
  package let commits: [Commit]
  private let statesBefore = Locked<PastState?>(nil)

  /// The objects before the commits. Computed on first use, which costs what was written since.
  package var past: PastState {
    statesBefore.withLock { known in
      let past = known ?? PastState(before: commits, of: snapshot.state)
      known = past
      return past
    }
  }

  /// Creates the commits after a revision, or returns nil if some of them are not kept. Costs a reference for each
  /// commit.
  package init?(after revision: Revision, _ publishedHistory: PublishedHistory) {
    guard let commits = publishedHistory.commits(after: revision) else { return nil }
    after = revision
    snapshot = publishedHistory.snapshot
    self.commits = commits
  }
}
