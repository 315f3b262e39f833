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
    guard !deaf.isEmpty else { return listeners }
    for listener in deaf { index.unwire(listener.id) }
    unwired.append(contentsOf: deaf.map(\.id))
    for listener in deaf { listeners.remove(listener) }
    return listeners
  }

  /// Puts back what overflowed observers observe, as the paths lead by now; the next commit has a budget of its own.
  mutating func endOverflow() {
    for id in unwired { index.rewire(id, in: state) }
    if !unwired.isEmpty { index.collections.settle(in: state) }
    unwired.removeAll()
  }
}
