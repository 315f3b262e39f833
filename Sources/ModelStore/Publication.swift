package import KeyValueModel
package import KeyValueObserving

/// What is published, and who is told: the two change together, so that between reading a state and observing what comes
/// after it nothing can be lost or doubled. Reached through `ModelStore.withPublication` alone.
package struct Publication {
  /// The published state.
  package internal(set) var snapshot: Snapshot
  /// Who observes what.
  package var observers = ObserverIndex()
  /// What was published before, as far as it is kept.
  package internal(set) var history: History

  /// The earliest revision that can be resumed.
  package var oldestResumable: Revision { history.oldestResumable(at: snapshot.revision) }

  /// What an unbroken observer with these observations would have been told after `revision`; nil where the history does
  /// not reach back so far. `cells` names the groups of observations as `ObserverIndex.add` does; those whose object did
  /// not exist at `revision` are left out and given back.
  package func replay(
    _ cells: [(name: String?, observations: [Observation])], after revision: Revision
  ) -> (events: [ObserverEvent], absent: [String?])? {
    guard let commits = history.commits(after: revision, present: snapshot.revision) else { return nil }
    let past = PastState(before: commits, of: snapshot.state)
    var index = ObserverIndex()
    var absent: [String?] = []
    for cell in cells {
      if cell.observations.contains(where: { past.record($0.object) == nil }) {
        absent.append(cell.name)
      } else {
        index.add(cell.observations, of: ObserverID(0), cell: cell.name, in: past)
      }
    }
    var events: [ObserverEvent] = []
    index.tell(commits, of: snapshot.state) { events.append($0) }
    return (events, absent)
  }
}
