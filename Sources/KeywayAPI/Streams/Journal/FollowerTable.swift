import HTTPServer
import KeyValueModel

/// The streams that follow the journal, and how far each has been notified. Without any input or output of its own.
///
/// A follower is with the others, who have been told up to the front; or behind; or ahead of them, for a moment: it
/// came with a cursor, or at a present, that the reader has not come to. One that is ahead and has asked waits.
struct FollowerTable {
  private enum Place {
    case withOthers
    case elsewhere(told: Revision)
    case waiting(told: Revision)
  }

  private var places: [StreamID: Place] = [:]
  /// Those who wait.
  private var waiting: Set<StreamID> = []
  /// How far those who are with the others have been told.
  private(set) var front: Revision = 0

  var isEmpty: Bool { places.isEmpty }

  /// The present, before the first follower comes; where there are some, the front is theirs.
  mutating func begin(at present: Revision) {
    if places.isEmpty { front = present }
  }

  /// A follower comes that has been told up to a revision.
  mutating func add(_ id: StreamID, toldUpTo revision: Revision) {
    places[id] = revision == front ? .withOthers : .elsewhere(told: revision)
  }

  mutating func remove(_ id: StreamID) {
    places[id] = nil
    waiting.remove(id)
    if places.capacity > 4 * places.count + 64 {
      places = Dictionary(uniqueKeysWithValues: places.map { ($0.key, $0.value) })
    }
  }

  /// A follower misses what comes after a revision. Does nothing where there is no such follower.
  mutating func beginLag(_ id: StreamID, lastNotified: Revision) {
    if places[id] != nil { places[id] = .elsewhere(told: lastNotified) }
  }

  /// The others have been told up to a revision. Gives those who need wait no longer.
  mutating func advance(to revision: Revision) -> [StreamID] {
    front = revision
    var ready: [StreamID] = []
    for id in waiting {
      guard case .waiting(let told)? = places[id], told <= revision else { continue }
      places[id] = .elsewhere(told: told)
      ready.append(id)
    }
    waiting.subtract(ready)
    return ready
  }

  /// How far a follower has been told that is not with the others; nil for one that is, or is to wait from now on.
  mutating func revisionToGoOnFrom(_ id: StreamID) -> Revision? {
    guard case .elsewhere(let told)? = places[id] else { return nil }
    guard told > front else { return told }
    places[id] = .waiting(told: told)
    waiting.insert(id)
    return nil
  }

  /// A follower has been told up to a revision, which is not beyond the front. True where it is with the others now.
  mutating func move(_ id: StreamID, to revision: Revision) -> Bool {
    let isWithOthers = revision == front
    places[id] = isWithOthers ? .withOthers : .elsewhere(told: revision)
    return isWithOthers
  }
}
