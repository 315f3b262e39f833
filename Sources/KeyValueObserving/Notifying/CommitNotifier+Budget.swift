import KeyValueModel

/// Observers that one commit has told too much.
extension CommitNotifier {
  /// Adds what an observer is told, for which there is room, where the budget has some left for it.
  mutating func append(_ change: Change, of id: ObserverIndex.TrackedID, for observer: ObserverID) {
    guard values.takeChange(of: payers(of: observer)) else { return notifications.miss(observer) }
    notifications.append(change, of: id, for: observer)
  }

  /// The observations that depend on a key and whose observers still listen.
  ///
  /// Those of an overflowed observer are taken out of the index when they are met, so that none is met twice; they are
  /// not needed before the end of the commit.
  mutating func listeners(to key: ObservedKey) -> SmallSet<ObserverIndex.Listener> {
    var listeners = index.listeners(dependingOn: key)
    let overflowed = notifications.overflowed
    guard !overflowed.isEmpty else { return listeners }
    let deaf = listeners.filter { overflowed.contains($0.registration.observer) }
    for listener in deaf {
      index.unwire(listener.id)
      if notifications.missesRest(listener.registration.observer) {
        missing.append(listener.id)
      } else {
        unwired.append(listener.id)
      }
      listeners.remove(listener)
    }
    return listeners
  }

  /// Puts back what observers observe that have overflowed in this commit only.
  mutating func endOverflow(_ gone: inout [ObserverID: Set<ObserverEvent.Gone>]) {
    gone.merge(index.rewire(unwired, in: state)) { $0.union($1) }
    unwired = []
  }

  /// All commits have been told: puts back what observers observe that missed some of them. Returns what that ends.
  mutating func endMissing(at last: Commit) -> [ObserverEvent] {
    guard !missing.isEmpty else { return [] }
    let gone = index.rewire(missing, in: state)
    missing = []
    index.sweep()
    return gone.sorted { $0.key.rawValue < $1.key.rawValue }.map { observer, ended in
      ObserverEvent(
        observer: observer, revision: last.revision, writer: last.writer, changes: [],
        gone: ObserverEvent.Gone.inOrder(ended))
    }
  }
}
