import HeapModule
import KeyValueModel

/// The objects that end by themselves, in the order in which they are due: tables without lock and clock.
///
/// Times are milliseconds of a clock that only grows. A lease runs by that clock from its commit on, so that setting
/// the machine's clock neither ends nor prolongs it. Memory: about 250 bytes for each object with a lease, none for
/// others.
struct LeaseTable: Sendable {
  /// An object to be deleted, for the lease of this revision.
  struct Claim: Sendable {
    let object: Reference
    let revision: Revision
  }

  private struct Entry {
    var revision: Revision
    /// When it is due; nil while a stream lasts.
    var due: UInt64?
    /// The stream that it lasts with.
    var stream: UInt64?
    /// The time of the one place in the queue that counts.
    var queued: UInt64?
    /// Who has made it end by itself; nil where that was before a restart.
    var client: Int?
    /// How often its deletion was refused, and up to which revision.
    var refusals = 0
    var refusedAt: Revision = 0
  }

  private struct Place: Comparable {
    let time: UInt64
    let object: Reference

    static func < (first: Self, second: Self) -> Bool { first.time < second.time }
  }

  /// Between two attempts to delete an object: half a second at first, four in the end.
  private static let shortestWait: UInt64 = 500
  private static let doublings = 3

  private var entries: [Reference: Entry] = [:]
  private var queue = Heap<Place>()
  private var objectsByStream: [UInt64: Set<Reference>] = [:]
  private var countsByClient: [Int: Int] = [:]

  /// How many objects have a lease.
  var count: Int { entries.count }

  /// How many of them a client has made so.
  func count(of client: Int) -> Int { countsByClient[client] ?? 0 }

  /// The streams that objects last with.
  var streams: [UInt64] { Array(objectsByStream.keys) }

  // MARK: What was written

  /// Notes what a commit at `now` left of an object: its lease, or nil where it has none or is gone. One that is known
  /// goes on. A lease of an object that had none counts for `client`, as long as the object has one.
  mutating func note(_ object: Reference, _ lease: Lease?, at now: UInt64, client: Int? = nil) {
    guard let lease else { return remove(object) }
    guard entries[object]?.revision != lease.revision else { return }
    switch lease.lifetime {
    case .seconds(let seconds): insert(object, lease, due: now + UInt64(seconds) * 1_000, client: client)
    case .stream(let number): insert(object, lease, due: nil, stream: number, client: client)
    case .unlimited: remove(object)
    }
  }

  /// Notes a lease of a store that was read back at `now`, which is `wall` in milliseconds since 1970. It has what is
  /// left up to its deadline, and never more than it had at first: a clock that was set back in between cannot hold it
  /// up longer. One of a stream, which is no more, has `grace`.
  mutating func restore(_ object: Reference, _ lease: Lease, at now: UInt64, wall: Int64, grace: UInt64) {
    guard case .seconds(let seconds) = lease.lifetime else { return insert(object, lease, due: now + grace) }
    let (rest, isFar) = lease.deadline.subtractingReportingOverflow(wall)
    insert(object, lease, due: now + UInt64(isFar ? 0 : min(max(rest, 0), seconds * 1_000)))
  }

  private mutating func insert(
    _ object: Reference, _ lease: Lease, due: UInt64?, stream: UInt64? = nil, client: Int? = nil
  ) {
    leaveStream(object)
    let before = entries[object]
    let client = before == nil ? client : before?.client
    if before == nil, let client { countsByClient[client, default: 0] += 1 }
    if let stream { objectsByStream[stream, default: []].insert(object) }
    entries[object] = Entry(
      revision: lease.revision, due: due, stream: stream, queued: before?.queued, client: client)
    enqueue(object)
  }

  private mutating func remove(_ object: Reference) {
    leaveStream(object)
    if let client = entries.removeValue(forKey: object)?.client {
      let count = count(of: client) - 1
      countsByClient[client] = count == 0 ? nil : count
    }
    dropStalePlaces()
  }

  private mutating func leaveStream(_ object: Reference) {
    guard let stream = entries[object]?.stream else { return }
    entries[object]?.stream = nil
    objectsByStream[stream]?.remove(object)
    if objectsByStream[stream]?.isEmpty == true { objectsByStream[stream] = nil }
  }

  /// Sees to it that the object comes up when it is due, or before.
  private mutating func enqueue(_ object: Reference) {
    guard let entry = entries[object], let due = entry.due, due < entry.queued ?? .max else { return }
    entries[object]?.queued = due
    queue.insert(Place(time: due, object: object))
    dropStalePlaces()
  }

  /// Builds the queue anew once most of it does not count: O(1) on average.
  private mutating func dropStalePlaces() {
    guard queue.count > 2 * entries.count + 64 else { return }
    queue = Heap(entries.compactMap { object, entry in entry.queued.map { Place(time: $0, object: object) } })
  }

  // MARK: What is due

  /// A stream is gone for good: so are, from `now` on, the objects that last with it.
  mutating func end(stream: UInt64, at now: UInt64) {
    for object in objectsByStream.removeValue(forKey: stream) ?? [] {
      entries[object]?.stream = nil
      entries[object]?.due = now
      enqueue(object)
    }
  }

  /// Takes up to `limit` objects that are due; each comes again only if it is refused, or has another lease by then.
  /// Those that were refused wait on while the store is at the same revision.
  mutating func takeDue(at now: UInt64, revision: Revision, limit: Int) -> [Claim] {
    var claims: [Claim] = []
    while claims.count < limit, let first = queue.min, first.time <= now {
      queue.removeMin()
      guard let entry = entries[first.object], entry.queued == first.time else { continue }
      entries[first.object]?.queued = nil
      guard let due = entry.due else { continue }
      if due > now {
        enqueue(first.object)
      } else if entry.refusals > 0, entry.refusedAt == revision {
        wait(first.object, entry, at: now)
      } else {
        claims.append(Claim(object: first.object, revision: entry.revision))
      }
    }
    return claims
  }

  /// An object could not be deleted at a revision: it comes again after a while.
  mutating func refuse(_ claim: Claim, at now: UInt64, revision: Revision) {
    guard var entry = entries[claim.object], entry.revision == claim.revision else { return }
    entry.refusals = min(entry.refusals + 1, Self.doublings + 1)
    entry.refusedAt = revision
    wait(claim.object, entry, at: now)
  }

  private mutating func wait(_ object: Reference, _ entry: Entry, at now: UInt64) {
    var entry = entry
    entry.due = now + Self.shortestWait << UInt64(max(0, entry.refusals - 1))
    entry.queued = nil
    entries[object] = entry
    enqueue(object)
  }
}
