import HeapModule
import KeyValueModel

/// The objects with a lease, in the order in which they are due. A table without a lock or a clock of its own.
///
/// Times are milliseconds of a monotonic clock. A lease runs by that clock from its commit on, so that setting the
/// machine's clock neither shortens nor extends it. Memory: about 250 bytes for each object with a lease, none for
/// other objects.
struct LeaseTable: Sendable {
  /// An object to delete because its lease of this revision has expired.
  struct Claim: Sendable {
    let object: Reference
    let revision: Revision
  }

  private struct Entry {
    var revision: Revision
    /// The time at which the object is due; nil while its stream exists.
    var due: UInt64?
    /// The stream that the lease is bound to.
    var stream: UInt64?
    /// The time of the object's only valid place in the queue.
    var queued: UInt64?
    /// The client that gave the object its first lease; nil if that was before a restart.
    var client: Int?
    /// The number of refused deletions in a row, at most one more than `doublings`, and the revision of the last
    /// refusal.
    var refusals = 0
    var refusedAt: Revision = 0
  }

  private struct Place: Comparable {
    let time: UInt64
    let object: Reference

    static func < (first: Self, second: Self) -> Bool { first.time < second.time }
  }

  /// The wait between two attempts to delete an object, in milliseconds: half a second at first, doubling to four
  /// seconds.
  private static let shortestWait: UInt64 = 500
  private static let doublings = 3

  private var entries: [Reference: Entry] = [:]
  private var queue = Heap<Place>()
  private var objectsByStream: [UInt64: Set<Reference>] = [:]
  private var countsByClient: [Int: Int] = [:]

  /// The number of objects with a lease.
  var count: Int { entries.count }

  /// The number of leases that count for a client.
  func count(of client: Int) -> Int { countsByClient[client] ?? 0 }

  /// The streams that leases are bound to.
  var streams: [UInt64] { Array(objectsByStream.keys) }

  // MARK: Commits

  /// Records the lease that a commit at `now` left on an object; nil if the object has none or was deleted. A lease
  /// that is already known continues. The lease of an object that had none counts for `client` as long as the object
  /// has a lease.
  mutating func note(_ object: Reference, _ lease: Lease?, at now: UInt64, client: Int? = nil) {
    guard let lease else { return remove(object) }
    guard entries[object]?.revision != lease.revision else { return }
    switch lease.lifetime {
    case .seconds(let seconds): insert(object, lease, due: now + UInt64(seconds) * 1_000, client: client)
    case .stream(let number): insert(object, lease, due: nil, stream: number, client: client)
    case .unlimited: remove(object)
    }
  }

  /// Records a lease of a store that was read back at `now`, which is `wall` in milliseconds since 1970. It lasts until
  /// its deadline, but never longer than its full duration: a clock that was set back in between cannot extend it. A
  /// lease bound to a stream, which no longer exists, expires after `grace` milliseconds.
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

  /// Ensures that the queue holds the object at the time at which it is due, or earlier.
  private mutating func enqueue(_ object: Reference) {
    guard let entry = entries[object], let due = entry.due, due < entry.queued ?? .max else { return }
    entries[object]?.queued = due
    queue.insert(Place(time: due, object: object))
    dropStalePlaces()
  }

  /// Rebuilds the queue once most of its places are stale: O(1) on average.
  private mutating func dropStalePlaces() {
    guard queue.count > 2 * entries.count + 64 else { return }
    queue = Heap(entries.compactMap { object, entry in entry.queued.map { Place(time: $0, object: object) } })
  }

  // MARK: Expiry

  /// Ends a stream that is gone for good: the objects whose leases are bound to it are due from `now` on.
  mutating func end(stream: UInt64, at now: UInt64) {
    for object in objectsByStream.removeValue(forKey: stream) ?? [] {
      entries[object]?.stream = nil
      entries[object]?.due = now
      enqueue(object)
    }
  }

  /// Removes up to `limit` due objects from the queue. An object returns to it only if its deletion is refused or it
  /// gets another lease. Objects whose deletion was refused wait longer while the store is still at the same revision.
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

  /// Notes that an object could not be deleted at a revision, and queues it again after a wait.
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
