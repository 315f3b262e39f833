import Glibc
import Support

/// Snapshots: files beside the database.
extension SQLiteJournal {
  /// See `TransactionJournal.snapshots()`.
  package func snapshots() throws(JournalError) -> [JournalSnapshot] {
    let (database, head, last) = state.withLock { ($0.database, $0.head, $0.last) }
    var found: [JournalSnapshot] = []
    for name in try SystemFile.names(in: layout.snapshots).reversed() {
      guard let revision = JournalLayout.revision(ofSnapshot: name), revision >= head.base, revision <= last,
        let file = try? SnapshotFile(path: "\(layout.snapshots)/\(name)"), file.header.revision == revision
      else { continue }
      // One of another epoch, or of a chain that this is not, would bring back what was never here.
      let digest = try database.digest(at: revision, head)
      guard file.header.epoch == head.epoch, file.header.schema == head.schema, file.header.digest == digest else {
        continue
      }
      found.append(JournalSnapshot(revision: revision, digest: file.header.digest))
    }
    return found
  }

  /// See `TransactionJournal.writeSnapshot(at:milliseconds:_:)`.
  package func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    let (database, head, last) = state.withLock { ($0.database, $0.head, $0.last) }
    let digest = try database.digest(at: revision, head)
    guard revision <= last, let digest else {
      throw .invalid("the journal does not hold revision \(revision)")
    }
    let header = SnapshotFile.Header(
      epoch: head.epoch, revision: revision, digest: digest, milliseconds: milliseconds, schema: head.schema)
    try SnapshotFile.write(header, to: layout.snapshot(revision), next)
  }

  /// See `TransactionJournal.file(of:)`.
  package func file(of snapshot: JournalSnapshot) -> String? { layout.snapshot(snapshot.revision) }

  /// See `TransactionJournal.readSnapshot(_:_:)`.
  package func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws {
    try SnapshotFile(path: layout.snapshot(snapshot.revision)).read(receive)
  }

  /// See `TransactionJournal.rebase(to:schema:milliseconds:_:)`.
  package func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try maintenance.withLock { _ throws(JournalError) in
      try noting { () throws(JournalError) in
        try requireLog(of: usable().0)
        try beginAnew(at: revision, schema: schema, milliseconds: milliseconds, next)
      }
    }
  }

  private func beginAnew(
    at revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    let (database, last, _) = try usable()
    let head = state.withLock { $0.head }
    guard revision == last || revision == last + 1 else {
      throw .unexpectedRevision(expected: revision, last: last)
    }
    let digest = JournalDigest.rebased(to: revision, schema: schema)
    let header = SnapshotFile.Header(
      epoch: head.epoch, revision: revision, digest: digest, milliseconds: milliseconds, schema: schema)
    // Until the head names it, it is not taken for one of this journal: its schema, or its digest, is another.
    try SnapshotFile.write(header, to: layout.snapshot(revision), next)
    let rebased = JournalDatabase.Head(epoch: head.epoch, schema: schema, base: revision, baseDigest: digest)
    try database.write(rebased, removingUpTo: revision)
    state.withLock { state in
      state.head = rebased
      state.last = revision
      state.tip = digest
    }
    if let mark { DurableWatermark(revision: revision, digest: digest).write(to: mark) }
    try removeSnapshots { $0 < revision }
  }

  func removeSnapshots(where isObsolete: (UInt64) -> Bool) throws(JournalError) {
    for name in try SystemFile.names(in: layout.snapshots) {
      // What a writer left that did not come to its end.
      let isDraft = name.hasSuffix(".draft")
      guard isDraft || JournalLayout.revision(ofSnapshot: name).map(isObsolete) == true else { continue }
      try SystemFile.remove("\(layout.snapshots)/\(name)")
    }
  }
}
