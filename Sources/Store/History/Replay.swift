package import KeyValueModel
package import KeyValueObserving
import Support

/// What an unbroken observer would have been told after a revision, as far as it has been told by now. Worked out while
/// others write, and brought up to the present when the observer is registered. A value that depends on nothing but the
/// commits that it is shown.
package struct Replay: Sendable {
  /// The last revision that was told.
  package private(set) var revision: Revision
  /// The groups that are left out because an object of theirs did not exist at the revision where they begin.
  package private(set) var absent: [String?] = []
  private var index = ObserverIndex()
  /// True if collections would have to be followed that have more members than there are steps.
  private var isTooLarge: Bool { index.isOverLimit }
  /// The steps that evaluation may still take, for all commits together.
  private var budget: ObservationBudget
  /// What was added to the index; some may have ended with their objects.
  private var observations: [Observation] = []

  /// A group of observations that begins at a later revision than the others. It may have the name of one that has
  /// ended by then.
  package typealias Later = (since: Revision, name: String?, observations: [Observation])

  /// Tells what was missed. `cells` names the groups of observations as `ObserverIndex.add` does; `limits` bounds
  /// the events as it does when they are delivered, and evaluation takes at most `steps`, those of a request by
  /// default: an overflowed event says that this was not enough.
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

  /// The event that replaces all changes that would have taken too long to find.
  private var overflow: ObserverEvent {
    ObserverEvent(
      observer: ObserverID(0), revision: revision, writer: nil, changes: [], gone: [], hasOverflowed: true,
      isTooLong: true)
  }

  /// Adds groups of observations, or notes them where an object of theirs is not there.
  private mutating func add(
    _ cells: some Sequence<(name: String?, observations: [Observation])>, in past: PastState
  ) {
    for cell in cells {
      if cell.observations.contains(where: { !past.isThere($0.object, for: $0.viewer) }) {
        absent.append(cell.name)
      } else if !isTooLarge {
        index.add(cell.observations, of: ObserverID(0), cell: cell.name, in: past)
        observations += cell.observations
      }
    }
  }

  /// Tells what the commits did that follow on the last that was told, and led to `present`.
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
