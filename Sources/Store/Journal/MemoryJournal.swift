import DequeModule
import Foundation
import Support

/// A journal in memory, which ends with the process. For stores that start empty each time, and as the simplest
/// implementation of a journal.
package final class MemoryJournal: TransactionJournal {
  private struct Contents {
    var identity: JournalIdentity
    var base: UInt64 = 0
    var baseDigest = JournalDigest.start
    var records: Deque<(record: JournalRecord, digest: JournalDigest)> = []
    var snapshots: [(snapshot: JournalSnapshot, blocks: [[UInt8]])] = []
    var revocations: [[UInt8]: Revocation] = [:]
    var isClosed = false

    var last: UInt64 { base + UInt64(records.count) }

    func digest(at revision: UInt64) -> JournalDigest? {
      if revision == base { return baseDigest }
      guard revision > base, revision <= last else { return nil }
      return records[Int(revision - base) - 1].digest
    }
  }

  private let contents: Locked<Contents>
  private let arrivals = ArrivalSignal()

  /// Creates a journal without records.
  package init(identity: JournalIdentity) {
    contents = Locked(Contents(identity: identity))
  }

  /// Creates a journal that begins with a copy of another node's state, or at revision 0 if `snapshot` is nil.
  package convenience init(joining identity: JournalIdentity, _ snapshot: SnapshotFile?) throws(JournalError) {
    self.init(identity: identity)
    guard let snapshot else { return }
    var blocks: [[UInt8]] = []
    do {
      try snapshot.read { blocks.append($0) }
    } catch {
      throw (error as? JournalError) ?? .damaged(place: "the copy", reason: "\(error)")
    }
    let (revision, digest) = (snapshot.header.revision, snapshot.header.digest)
    contents.withLock { contents in
      contents.base = revision
      contents.baseDigest = digest
      contents.snapshots = [(JournalSnapshot(revision: revision, digest: digest), blocks)]
    }
  }

  /// The epoch and the schema of the journal.
  package var identity: JournalIdentity { contents.withLock { $0.identity } }
  /// The revisions that the journal holds.
  package var bounds: JournalBounds { contents.withLock { JournalBounds(base: $0.base, last: $0.last) } }
  /// Always nil: the journal has no directory.
  package var directory: String? { nil }
  /// Always true: the journal ends with the process.
  package var isVolatile: Bool { true }

  /// See `TransactionJournal.append(_:after:)`.
  package func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    try contents.withLock { contents throws(JournalError) in
      guard !contents.isClosed else { throw JournalError.unusable("the journal is closed") }
      guard contents.last == expected else {
        throw JournalError.unexpectedRevision(expected: expected, last: contents.last)
      }
      try JournalRecord.check(records, follow: expected)
      for record in records {
        let digest = (contents.records.last?.digest ?? contents.baseDigest).linked(to: record)
        contents.records.append((record, digest))
      }
    }
    arrivals.announce(expected + UInt64(records.count))
  }

  /// See `TransactionJournal.records(after:limit:bytes:waiting:)`.
  package func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord] {
    if waiting > .zero { arrivals.wait(beyond: revision, for: waiting) { self.bounds.last } }
    return try contents.withLock { contents throws(JournalError) in
      guard !contents.isClosed else { throw JournalError.unusable("the journal is closed") }
      guard revision >= contents.base else { throw JournalError.compacted(base: contents.base) }
      guard revision < contents.last else { return [] }
      var found: [JournalRecord] = []
      var size = 0
      for entry in contents.records[Int(revision - contents.base)...].prefix(max(1, limit)) {
        found.append(entry.record)
        size += entry.record.body.count
        if size >= bytes { break }
      }
      return found
    }
  }

  /// See `TransactionJournal.digest(at:)`.
  package func digest(at revision: UInt64) throws(JournalError) -> JournalDigest? {
    contents.withLock { $0.digest(at: revision) }
  }

  /// See `TransactionJournal.snapshots()`.
  package func snapshots() -> [JournalSnapshot] {
    contents.withLock { $0.snapshots.map(\.snapshot).sorted { $0.revision > $1.revision } }
  }

  /// See `TransactionJournal.writeSnapshot(at:milliseconds:_:)`.
  package func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    let blocks = try Self.collect(next)
    try contents.withLock { contents throws(JournalError) in
      guard let digest = contents.digest(at: revision) else {
        throw JournalError.invalid("the journal does not hold revision \(revision)")
      }
      contents.snapshots.removeAll { $0.snapshot.revision == revision }
      contents.snapshots.append((JournalSnapshot(revision: revision, digest: digest), blocks))
    }
  }

  /// See `TransactionJournal.readSnapshot(_:_:)`.
  package func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws {
    let blocks = contents.withLock { $0.snapshots.first { $0.snapshot == snapshot }?.blocks }
    guard let blocks else { throw JournalError.invalid("the snapshot of revision \(snapshot.revision) does not exist") }
    for block in blocks { try receive(block) }
  }

  /// See `TransactionJournal.compact(upTo:)`.
  package func compact(upTo revision: UInt64) throws(JournalError) {
    try contents.withLock { contents throws(JournalError) in
      guard revision > contents.base else { return }
      guard let digest = contents.digest(at: revision) else {
        throw JournalError.invalid("the journal does not hold revision \(revision)")
      }
      contents.records.removeFirst(Int(revision - contents.base))
      contents.base = revision
      contents.baseDigest = digest
      contents.snapshots.removeAll { $0.snapshot.revision < revision }
    }
  }

  /// See `TransactionJournal.rebase(to:schema:milliseconds:_:)`.
  package func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    let blocks = try Self.collect(next)
    try contents.withLock { contents throws(JournalError) in
      guard revision == contents.last || revision == contents.last + 1 else {
        throw JournalError.unexpectedRevision(expected: revision, last: contents.last)
      }
      let digest = JournalDigest.rebased(to: revision, schema: schema)
      contents.identity = JournalIdentity(epoch: contents.identity.epoch, schema: schema)
      contents.base = revision
      contents.baseDigest = digest
      contents.records = []
      contents.snapshots = [(JournalSnapshot(revision: revision, digest: digest), blocks)]
    }
  }

  /// See `TransactionJournal.revocations()`.
  package func revocations() throws(JournalError) -> [Revocation] {
    try contents.withLock { contents throws(JournalError) in
      guard !contents.isClosed else { throw JournalError.unusable("the journal is closed") }
      return contents.revocations.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    }
  }

  /// See `TransactionJournal.setRevocation(of:to:)`.
  package func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    try contents.withLock { contents throws(JournalError) in
      guard !contents.isClosed else { throw JournalError.unusable("the journal is closed") }
      contents.revocations[Array(subject.utf8)] = milliseconds.map { Revocation(subject: subject, milliseconds: $0) }
    }
  }

  /// See `TransactionJournal.recover()`.
  package func recover() {}
  /// See `TransactionJournal.checkPresence()`.
  package func checkPresence() {}
  /// See `TransactionJournal.probe(bytes:)`.
  package func probe(bytes: Int) {}
  /// See `TransactionJournal.maintain()`.
  package func maintain() {}

  /// See `TransactionJournal.close()`.
  package func close() {
    contents.withLock { $0.isClosed = true }
    arrivals.announce(.max)
  }

  private static func collect(_ next: () throws -> [UInt8]?) throws(JournalError) -> [[UInt8]] {
    var blocks: [[UInt8]] = []
    while let block = try JournalError.block(next) { blocks.append(block) }
    return blocks
  }
}

/// Wakes readers that wait for a revision.
///
/// Sendable although it holds a class that is not: `NSCondition` is its own lock, and guards `last`.
package final class ArrivalSignal: @unchecked Sendable {
  private let condition = NSCondition()
  private var last: UInt64 = 0

  /// Creates a signal before any revision has arrived.
  package init() {}

  /// Announces that everything up to a revision has arrived.
  package func announce(_ revision: UInt64) {
    condition.lock()
    last = max(last, revision)
    condition.broadcast()
    condition.unlock()
  }

  /// Waits until a revision after `revision` has arrived or `duration` is over. `present` returns the last revision
  /// that has already arrived.
  package func wait(beyond revision: UInt64, for duration: Duration, present: () -> UInt64) {
    guard present() <= revision else { return }
    let (seconds, attoseconds) = duration.components
    let deadline = Date(timeIntervalSinceNow: Double(seconds) + Double(attoseconds) * 1e-18)
    condition.lock()
    defer { condition.unlock() }
    while last <= revision, condition.wait(until: deadline) {}
  }
}
