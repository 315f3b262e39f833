import KeyValueModel
import Support

/// Deletes the objects whose leases have ended, some at a time, by transactions like any other.
///
/// `contents` is guarded by its lock, inside which no other is taken; it is taken with the store's lock of the writer,
/// or with none.
final class LeaseKeeper: Sendable {
  private struct Contents {
    var table = LeaseTable()
    /// How many deletions the writer has.
    var underWay = 0
    var isHeld = false
    /// Whether another node deletes what is to end.
    var isLeft = false
    /// When the streams of earlier starts were known to be gone.
    var began: UInt64
  }

  /// The most objects of one transaction, which the writer does not leave off, and of all that wait for the writer.
  private static let batchCount = 16
  private static let underWayLimit = 400
  /// What a deletion counts in the writer's queue: while clients write, a batch has one transaction of deletions, so
  /// that they do not wait for the many objects that end at the same moment.
  private static let deletionBytes = 4_096

  private let contents: Locked<Contents>
  /// Milliseconds, which only grow.
  private let elapsed: @Sendable () -> UInt64

  /// The numbers of this node's streams; nil where all streams are.
  private let streams: StreamNumbers?

  init(streams: StreamNumbers? = nil, elapsed: @escaping @Sendable () -> UInt64) {
    self.streams = streams
    self.elapsed = elapsed
    contents = Locked(Contents(began: elapsed()))
  }

  private func isOwn(_ stream: UInt64) -> Bool { streams?.isOwn(stream) ?? true }

  /// How many objects have a lease.
  var count: Int { contents.withLock { $0.table.count } }

  /// Says of the transactions of a batch whether they may give leases.
  func admission(_ limits: StoreLimits) -> LeaseAdmission {
    LeaseAdmission(limit: limits.leases, limitPerClient: limits.leasesPerClient, count: count) { [self] client in
      contents.withLock { $0.table.count(of: client) }
    }
  }

  /// Notes what commits have left, in their order; `clients` has who gave a lease to an object that had none. Costs
  /// next to nothing while no object has a lease.
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

  /// Takes over the leases of a state that was read back at `wall`, in milliseconds since 1970. Those of streams, none
  /// of which outlives a restart, end after `grace` milliseconds, but for those of other nodes, and all where another
  /// node deletes what is to end. O(n) in the objects.
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

  /// Ends nothing from now on: the server stops, and its streams with it, which is for the next start to deal with.
  func hold() { contents.withLock { $0.isHeld = true } }

  /// Another node deletes what is to end, from the beginning.
  func leave() { contents.withLock { $0.isLeft = true } }

  /// Ends what lasts with streams of this node that are no more.
  func endStreams(unless isThere: (UInt64) -> Bool) { _ = end { isOwn($0) && !isThere($0) } }

  /// Ends what lasts with streams of other nodes that are gone, which `isGone` says. Gives how many streams these were.
  @discardableResult
  func endOthers(where isGone: (UInt64) -> Bool) -> Int { end { !isOwn($0) && isGone($0) } }

  private func end(where isGone: (UInt64) -> Bool) -> Int {
    // It may take another lock.
    let ended = contents.withLock { $0.table.streams }.filter(isGone)
    guard !ended.isEmpty else { return 0 }
    let now = elapsed()
    return contents.withLock { contents in
      guard !contents.isHeld, !contents.isLeft else { return 0 }
      for stream in ended { contents.table.end(stream: stream, at: now) }
      return ended.count
    }
  }

  /// The other nodes that have streams which objects last with.
  var otherNodes: Set<UInt64> {
    guard streams != nil else { return [] }
    return Set(contents.withLock { $0.table.streams }.filter { !isOwn($0) }.map(StreamNumbers.node(of:)))
  }

  /// The streams of this node that are gone and that objects last with, in ascending order: those of earlier starts
  /// after `grace` milliseconds of this one.
  func goneStreams(
    unless isThere: (UInt64) -> Bool, isOfThisStart: (UInt64) -> Bool, grace: UInt64
  ) -> [UInt64] {
    let now = elapsed()
    let (streams, isOver) = contents.withLock { contents in
      (contents.isHeld ? [] : contents.table.streams, now - min(now, contents.began) >= grace)
    }
    return streams.filter { isOwn($0) && !isThere($0) && (isOver || isOfThisStart($0)) }.sorted()
  }

  /// Hands what is due to the writer, and what is due then, and so on. `lateness`, in milliseconds: only what has been
  /// due for so long.
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
    // A renewal that the writer had first wins.
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

/// Whether the transactions of a batch may give leases to objects that have none: not more objects than the store has
/// room for, and not more of one client than its share. To give another lease to an object that has one is always
/// allowed, or a store that is full would end what is in use.
///
/// A value of the writer: what it admits is not in the table yet when it is asked for the next.
struct LeaseAdmission {
  private let limit: ShareLimit
  private let count: Int
  /// How many a client has in the table.
  private let countOfClient: (Int) -> Int
  private var admitted = 0
  private var admittedOfClients: [Int: Int] = [:]
  /// The client of each object that got a lease and had none.
  private(set) var clients: [Reference: Int] = [:]

  /// For a batch that begins with so many leases, of which a client has what `countOfClient` gives.
  init(limit: Int, limitPerClient: Int, count: Int, countOfClient: @escaping (Int) -> Int) {
    self.limit = ShareLimit(total: limit, perClient: limitPerClient)
    self.count = count
    self.countOfClient = countOfClient
  }

  /// The objects that a transaction gives leases to and that have none in this state. Throws `too-many-leases` or
  /// `too-many-leases-of-client`. O(n) in its operations, and next to nothing for one without leases.
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

  /// The transaction was applied that `check` has given these objects of.
  mutating func add(_ objects: Set<Reference>, of client: Int) {
    guard !objects.isEmpty else { return }
    admitted += objects.count
    admittedOfClients[client, default: 0] += objects.count
    for object in objects { clients[object] = client }
  }
}
