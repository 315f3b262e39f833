package import KeyValueModel
package import KeyValueObserving

/// What an unbroken observer would have been told after a revision, as far as it has been told by now. Worked out while
/// others write, and brought up to the present when the observer is registered. A value that depends on nothing but the
/// commits that it is shown.
package struct Replay: Sendable {
  /// The last revision that was told.
  package private(set) var revision: Revision
  /// The groups that are left out because an object of theirs did not exist at the revision that was resumed from.
  package private(set) var absent: [String?] = []
  private var index = ObserverIndex()
  /// What was added to the index; some may have ended with their objects.
  private var observations: [Observation] = []

  /// Tells what was missed. `cells` names the groups of observations as `ObserverIndex.add` does; `limits` bounds
  /// the events as it does when they are delivered.
  package init(
    _ cells: [(name: String?, observations: [Observation])], _ missed: MissedCommits, limits: StoreLimits,
    receive: (ObserverEvent) -> Void
  ) {
    let present = missed.snapshot.state
    revision = missed.snapshot.revision
    let concerning = Observation.commits(
      missed.commits, concerning: cells.lazy.flatMap(\.observations), in: present)
    let past = concerning.map { PastState(before: $0, of: present) } ?? missed.past
    for cell in cells {
      if cell.observations.contains(where: { !past.isThere($0.object, for: $0.viewer) }) {
        absent.append(cell.name)
      } else {
        index.add(cell.observations, of: ObserverID(0), cell: cell.name, in: past)
        observations += cell.observations
      }
    }
    index.notify(
      concerning ?? missed.commits, of: present, from: past, changesPerObserver: limits.changesPerObserver,
      bytesPerObserver: limits.bytesPerObserver, receive: receive)
  }

  /// Tells what the commits did that follow on the last that was told, and led to `present`.
  package mutating func bringUp(
    through commits: [Commit], to present: ModelState, limits: StoreLimits, receive: (ObserverEvent) -> Void
  ) {
    guard let last = commits.last else { return }
    assert(commits.first?.revision == revision + 1)
    revision = last.revision
    index.notify(
      Observation.commits(commits, concerning: observations, in: present) ?? commits, of: present,
      changesPerObserver: limits.changesPerObserver, bytesPerObserver: limits.bytesPerObserver, receive: receive)
  }
}
