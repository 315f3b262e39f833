import DequeModule
import HTTPServer
import KeyValueModel

/// The streams that follow the journal, and how far each has been notified. The table does no input or output.
///
/// A subscriber is with the others, which have received everything up to the front; or behind; or ahead, for a moment:
/// it came with a cursor, or at a present, that the reader has not reached. A subscriber that is ahead and has asked
/// for more waits.
struct JournalSubscribers {
  private enum Place {
    case withOthers
    case elsewhere(delivered: Revision)
    case waiting(delivered: Revision)
  }

  private var places: [StreamID: Place] = [:]
  /// The subscribers that wait.
  private var waiting: Set<StreamID> = []
  /// The revision up to which the subscribers that are with the others have received everything.
  private(set) var front: Revision = 0

  var isEmpty: Bool { places.isEmpty }

  /// Sets the front to the present if there is no subscriber yet; otherwise the front is that of the subscribers.
  mutating func begin(at present: Revision) {
    if places.isEmpty { front = present }
  }

  /// Adds a subscriber that has received everything up to a revision.
  mutating func add(_ id: StreamID, deliveredUpTo revision: Revision) {
    places[id] = revision == front ? .withOthers : .elsewhere(delivered: revision)
  }

  mutating func remove(_ id: StreamID) {
    places[id] = nil
    waiting.remove(id)
    if places.capacity > 4 * places.count + 64 {
      places = Dictionary(uniqueKeysWithValues: places.map { ($0.key, $0.value) })
    }
  }

  /// Notes that a subscriber misses what comes after a revision. Does nothing if there is no such subscriber.
  mutating func beginLag(_ id: StreamID, lastNotified: Revision) {
    if places[id] != nil { places[id] = .elsewhere(delivered: lastNotified) }
  }

  /// Notes that the others have received everything up to a revision. Returns the subscribers that need not wait any
  /// longer.
  mutating func advance(to revision: Revision) -> [StreamID] {
    front = revision
    var ready: [StreamID] = []
    for id in waiting {
      guard case .waiting(let delivered)? = places[id], delivered <= revision else { continue }
      places[id] = .elsewhere(delivered: delivered)
      ready.append(id)
    }
    waiting.subtract(ready)
    return ready
  }

  /// Returns the revision up to which a subscriber that is not with the others has received everything; nil for a
  /// subscriber that is with them, or that waits from now on.
  mutating func revisionToGoOnFrom(_ id: StreamID) -> Revision? {
    guard case .elsewhere(let delivered)? = places[id] else { return nil }
    guard delivered > front else { return delivered }
    places[id] = .waiting(delivered: delivered)
    waiting.insert(id)
    return nil
  }

  /// Notes that a subscriber has received everything up to a revision, which is not beyond the front. Returns true if
  /// it is with the others now.
  mutating func move(_ id: StreamID, to revision: Revision) -> Bool {
    let isWithOthers = revision == front
    places[id] = isWithOthers ? .withOthers : .elsewhere(delivered: revision)
    return isWithOthers
  }
}

/// The last events of a feed as they were sent, for subscribers that are a little behind: if many come back together,
/// they need not each read the journal again.
struct FeedTail {
  private var events: Deque<EventBytes> = []
  private var first: Revision = 0
  private var byteCount = 0
  private let byteLimit: Int

  init(byteLimit: Int) {
    self.byteLimit = byteLimit
  }

  /// Adds the next event.
  mutating func append(_ event: EventBytes) {
    if events.isEmpty { first = StreamPosition(rawValue: event.position).revision }
    events.append(event)
    byteCount += event.count
    while byteCount > byteLimit, let oldest = events.popFirst() {
      byteCount -= oldest.count
      first += 1
    }
  }

  mutating func removeAll() {
    events = []
    byteCount = 0
  }

  /// Returns the events after a revision, no more once they have reached `bytes`, but at least one; nil if not all of
  /// them are kept any more, or if there are none.
  func events(after revision: Revision, bytes: Int) -> [EventBytes]? {
    guard revision + 1 >= first, revision + 1 < first + Revision(events.count) else { return nil }
    var found: [EventBytes] = []
    var size = 0
    for event in events[Int(revision + 1 - first)...] {
      found.append(event)
      size += event.count
      if size >= bytes { break }
    }
    return found
  }
}
