/// The budget: how much one commit may tell one observer, and those that it has told too much.
extension CommitNotifier {
  /// Whether an observer may be told one thing more in this commit. If not, all that it would be told is dropped.
  mutating func hasRoom(for observer: ObserverID) -> Bool {
    guard !overflowed.contains(observer) else { return false }
    guard notifications[observer]?.count ?? 0 >= changesPerObserver else { return true }
    overflowed.insert(observer)
    notifications[observer] = nil
    return false
  }

  /// Adds what an observer is told, for which there is room, unless its values are too long with those before.
  mutating func append(_ notification: CollectedNotification, for observer: ObserverID) {
    if bytesPerObserver < .max {
      let sum = (bytes[observer] ?? 0) + notification.change.textBytes
      guard sum <= bytesPerObserver else {
        tooLong.insert(observer)
        overflowed.insert(observer)
        notifications[observer] = nil
        return
      }
      bytes[observer] = sum
    }
    notifications[observer, default: []].append(notification)
  }

  /// The observations that depend on a key and whose observers still listen.
  ///
  /// Those of an overflowed observer are taken out of the index when they are met, so that none is met twice; they are
  /// not needed before the end of the commit.
  mutating func listeners(to key: ObservedKey) -> SmallSet<ObserverIndex.Listener> {
    var listeners = index.listeners(dependingOn: key)
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
    overflowed.removeAll()
    tooLong.removeAll()
  }
}
