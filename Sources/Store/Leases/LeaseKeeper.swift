import KeyValueModel
import Support

/// Deletes the objects whose leases have expired, some at a time, by ordinary transactions.
///
/// `contents` is guarded by its lock, inside which no other is taken; it is taken with the store's lock of the writer,
/// or with none.
final class LeaseKeeper: Sendable {
  private struct Contents {
    var table = LeaseTable()
    /// The number of deletions that the writer has not finished.
    var underWay = 0
    var isHeld = false
    /// True if another node deletes the objects whose leases expire.
    var isLeft = false
    /// The time at which all streams of earlier starts were known to have ended.
    var began: UInt64
  }

  /// The maximum number of objects in one transaction, which the writer does not interrupt, and the maximum number of
  /// deletions that wait for the writer.
  private static let batchCount = 16
  private static let underWayLimit = 400
  /// The size of a deletion in the writer's queue: while clients write, a batch has one transaction of deletions, so
  /// that clients do not wait for the many objects whose leases expire at the same moment.
  private static let deletionBytes = 4_096

  private let contents: Locked<Contents>
  /// Returns milliseconds of a monotonic clock.
  private let elapsed: @Sendable () -> UInt64

  /// The numbers of this node's streams; nil if all streams belong to this node.
  private let streams: StreamNumbers?

  init(streams: StreamNumbers? = nil, elapsed: @escaping @Sendable () -> UInt64) {
    self.streams = streams
    self.elapsed = elapsed
    contents = Locked(Contents(began: elapsed()))
  }

  private func isOwn(_ stream: UInt64) -> Bool { streams?.isOwn(stream) ?? true }

  /// The number of objects with a lease.
  var count: Int { contents.withLock { $0.table.count } }

  /// Returns the admission that decides which transactions of a batch may assign leases.
  func admission(_ limits: StoreLimits) -> LeaseAdmission {
    LeaseAdmission(limit: limits.leases, limitPerClient: limits.leasesPerClient, count: count) { [self] client in
      contents.withLock { $0.table.count(of: client) }
    }
  }

  /// Records the leases that commits have left, in the order of the commits. `clients` names the client for each object
  /// that had no lease before. Costs almost nothing while no object has a lease.
  func note(_ commits: [Commit], of clients: [Reference: Int] = [:]) {
    let now = elapsed()
    contents.withLock { contents in
      for commit in commits {
        commit.forEachWrite { object, record in
          guard record?.lease != nil || contents.table.count > 0 else { return }
          contents.table.note(object, record?.lease, at: now, client: clients[object])
        }
      }
    }
  }

  /// Takes over the leases of a state that was read back at `wall`, in milliseconds since 1970. Leases bound to
  /// streams, none of which outlives a restart, expire after `grace` milliseconds, except those of other nodes'
  /// streams, and except if another node deletes the expired objects. O(n) in the objects.
  func restore(_ state: ModelState, wall: Int64, grace: UInt64) {
    let now = elapsed()
    contents.withLock { contents in
      contents.table = LeaseTable()
      contents.began = now
      for (reference, record) in state.all {
        guard let lease = record.lease else { continue }
        if case .stream(let number) = lease.lifetime, contents.isLeft || !isOwn(number) {
          contents.table.note(reference, lease, at: now)
        } else {
          contents.table.restore(reference, lease, at: now, wall: wall, grace: grace)
        }
      }
    }
  }

  /// Stops all expiry from now on: the server is stopping, and with it its streams, whose leases the next start
  /// handles.
  func hold() { contents.withLock { $0.isHeld = true } }

  /// Leaves the deletion of expired objects to another node. Called at the beginning.
  func leave() { contents.withLock { $0.isLeft = true } }

  /// Expires the leases bound to streams of this node that no longer exist.
  func endStreams(unless exists: (UInt64) -> Bool) { _ = end { isOwn($0) && !exists($0) } }

  /// Expires the leases bound to streams of other nodes that are gone according to `isGone`. Returns the number of
  /// these streams.
  @discardableResult
  func endOthers(where isGone: (UInt64) -> Bool) -> Int { end { !isOwn($0) && isGone($0) } }

  private func end(where isGone: (UInt64) -> Bool) -> Int {
    // `isGone` may take another lock.
    let ended = contents.withLock { $0.table.streams }.filter(isGone)
    guard !ended.isEmpty else { return 0 }
    let now = elapsed()
    return contents.withLock { contents in
      guard !contents.isHeld, !contents.isLeft else { return 0 }
      for stream in ended { contents.table.end(stream: stream, at: now) }
      return ended.count
    }
  }

  /// The other nodes whose streams have leases bound to them.
  var otherNodes: Set<UInt64> {
    guard streams != nil else { return [] }
    return Set(contents.withLock { $0.table.streams }.filter { !isOwn($0) }.map(StreamNumbers.node(of:)))
  }

  /// Returns the streams of this node that are gone and have leases bound to them, in ascending order. Streams of
  /// earlier starts are included once `grace` milliseconds of this start have passed.
  func goneStreams(
    unless exists: (UInt64) -> Bool, isOfThisStart: (UInt64) -> Bool, grace: UInt64
  ) -> [UInt64] {
    let now = elapsed()
    let (streams, hasGraceEnded) = contents.withLock { contents in
      (contents.isHeld ? [] : contents.table.streams, now - min(now, contents.began) >= grace)
    }
    return streams.filter { isOwn($0) && !exists($0) && (hasGraceEnded || isOfThisStart($0)) }.sorted()
  }

  /// Submits the deletion of objects whose leases have expired to the writer, and continues with those that have
  /// expired by the time these are done. `lateness`: only objects that have been due for so many milliseconds.
  func deleteDue(in store: Store, lateBy lateness: UInt64 = 0) {
    let now = elapsed()
    guard now >= lateness else { return }
    let revision = store.revision
    let claims = contents.withLock { contents -> [LeaseTable.Claim] in
      guard !contents.isHeld, !contents.isLeft else { return [] }
      let claims = contents.table.takeDue(
        at: now - lateness, revision: revision, limit: max(0, Self.underWayLimit - contents.underWay))
      contents.underWay += claims.count
      return claims
    }
    var rest = claims[...]
    while !rest.isEmpty {
      let batch = Array(rest.prefix(Self.batchCount))
      rest = rest.dropFirst(batch.count)
      submit(batch, to: store)
    }
  }

  private func submit(_ batch: [LeaseTable.Claim], to store: Store) {
    // A renewal that reached the writer first wins.
    let preconditions = batch.map { claim in
      Precondition.holds(claim.object) { $0.record(claim.object)?.lease?.revision == claim.revision }
    }
    let transaction = Transaction(batch.map { .delete($0.object) }, preconditions: preconditions)
    let bytes = batch.count * Self.deletionBytes
    let isAccepted = store.submit(transaction, bytes: bytes) { [self] outcome, revision, failure in
      if failure == nil, case .success = outcome {
        finish(batch)
        if store.isCaretaker { deleteDue(in: store) }
      } else if failure == nil, batch.count > 1 {
        for claim in batch { submit([claim], to: store) }
      } else {
        finish(batch, refusedAt: failure == nil ? revision : 0)
      }
    }
    if !isAccepted { finish(batch, refusedAt: 0) }
  }

  private func finish(_ batch: [LeaseTable.Claim], refusedAt revision: Revision? = nil) {
    let now = elapsed()
    contents.withLock { contents in
      contents.underWay -= batch.count
      guard let revision else { return }
      for claim in batch { contents.table.refuse(claim, at: now, revision: revision) }
    }
  }
}

/// Decides whether the transactions of a batch may assign leases to objects that have none: no more objects than the
/// store has room for, and no more for one client than its share. Replacing the lease of an object is always allowed;
/// otherwise a full store would expire objects that are in use.
///
/// Only the writer uses it: the leases that it admits are not in the table yet when the next transaction is checked.
struct LeaseAdmission {
  private let limit: ShareLimit
  private let count: Int
  /// Returns the number of leases that a client has in the table.
  private let countOfClient: (Int) -> Int
  private var admitted = 0
  private var admittedOfClients: [Int: Int] = [:]
  /// The client of each object that was given its first lease.
  private(set) var clients: [Reference: Int] = [:]

  /// Creates the admission for a batch that begins with `count` leases, of which a client holds the number that
  /// `countOfClient` returns.
  init(limit: Int, limitPerClient: Int, count: Int, countOfClient: @escaping (Int) -> Int) {
    self.limit = ShareLimit(total: limit, perClient: limitPerClient)
    self.count = count
    self.countOfClient = countOfClient
  }

  /// Returns the objects without a lease in this state that a transaction assigns leases to. Throws `too-many-leases`
  /// or `too-many-leases-of-client`. O(n) in the operations, and almost free for a transaction without leases.
  func check(
    _ transaction: Transaction, of client: Int, in state: borrowing ModelState
  ) throws(ModelError) -> Set<Reference> {
    var objects: Set<Reference> = []
    for operation in transaction.operations {
      guard case .lifetime(let object, let lifetime) = operation, lifetime != .unlimited,
        state.record(object)?.lease == nil
      else { continue }
      objects.insert(object)
    }
    guard !objects.isEmpty else { return objects }
    let own = countOfClient(client) + admittedOfClients[client, default: 0]
    let total = count + admitted
    switch limit.refusal(of: objects.count, held: own, total: total) {
    case nil: return objects
    case .total:
      throw ModelError(
        .tooManyLeases,
        "of the \(limit.total) leases of leases.maximum, \(total) are in use, \(own) by this client; its share of the "
          + "rest does not suffice for \(objects.count) more")
    case .perClient:
      throw ModelError(
        .tooManyLeasesOfClient,
        "this client holds \(own) leases, and leases.perClient allows \(limit.perClient)")
    }
  }

  /// Counts the objects that `check` has returned for a transaction, once the transaction is applied.
  mutating func add(_ objects: Set<Reference>, of client: Int) {
    guard !objects.isEmpty else { return }
    admitted += objects.count
    admittedOfClients[client, default: 0] += objects.count
    for object in objects { clients[object] = client }
  }
}
