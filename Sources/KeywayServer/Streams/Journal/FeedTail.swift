import DequeModule
import HTTPServer
import KeyValueModel

/// The last events of a feed as they were sent, for followers that are a little behind: a crowd that comes back
/// together need not read the journal again, each for itself.
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

  /// The events after a revision, no more once they have come to `bytes`, but at least one; nil where they are not all
  /// known any more, or there are none.
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
