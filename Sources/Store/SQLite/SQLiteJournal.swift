import Glibc
import Support

/// A journal in a directory: records in an SQLite database (write-ahead log, one sync for each batch), snapshots in
/// files beside it.
///
/// Only `state` changes, under its lock, which is held only briefly and never during disk access; only the writer
/// changes it. Lock order: no lock is held together with another.
package final class SQLiteJournal: TransactionJournal {
  /// The time at which records are on the disk.
  package enum Durability: Hashable, Sendable {
    /// Before `append` returns.
    case synced
    /// Within so many milliseconds: a power failure loses what was acknowledged in that window. The end of the process
    /// loses nothing.
    case relaxed(milliseconds: Int)
  }

  private struct State {
    var database: JournalDatabase
    var head: JournalDatabase.Head
    var last: UInt64
    /// The digest of the chain at `last`.
    var tip: JournalDigest
    /// The reason why nothing may be appended until `recover` has succeeded; nil if there is none.
    var untrustedReason: String?
    var files: StoreFiles
    /// True if the database records that it is incomplete without its log, which is required before anything is
    /// written; nil before this was recorded, and false while it waits for readers and is not in its place yet.
    var isLogRequired: Bool?
    /// The approximate number of pages in the log that are not in the database yet.
    var logPages = 0
    var isClosed = false
  }

  private let layout: JournalLayout
  private let durability: Durability
  private let state: Locked<State>
  private let arrivals = ArrivalSignal()
  /// Remarks found on opening: what was cut off, and why.
  package let remarks: [String]

  /// The lock of the directory; nil if the journal is only read.
  private let lock: DirectoryLock?
  private let mark: SystemFile?
  private let flusher: LogFlusher?
  /// Held while the journal compacts, recovers or is rebased, so that these run one after the other. No other lock is
  /// held when it is taken.
  private let maintenance = Locked(())

  /// The number of 4096-byte pages in the log above which `maintain` moves them into the database.
  private static let logPageLimit = 2000
  /// The maximum number of records removed in one transaction, and the maximum of their bytes, so that appending does
  /// not wait for long: each page of a long record is read.
  private static let (removalLimit, removalBytes) = (2000, 1 << 20)
  /// The pause between two of these transactions, in microseconds.
  private static let removalPause: UInt32 = 5000

  /// Opens the journal of a directory, or creates one with `identity` if there is none.
  ///
  /// Throws `inUse` if another process uses it, `unusable` if a later version made it, and `damaged` if acknowledged
  /// records are missing. Records at the end that were never acknowledged and are incomplete are cut off, and `remarks`
  /// reports this.
  package init(directory: String, durability: Durability, identity: () -> JournalIdentity) throws(JournalError) {
    let layout = JournalLayout(directory: directory)
    self.layout = layout
    self.durability = durability
    try SystemFile.makeDirectory(directory)
    try SystemFile.makeDirectory(layout.snapshots)
    let lock = try DirectoryLock(layout) { () throws(JournalError) in
      try Self.requireNothing(in: layout)
    }
    self.lock = lock
    let isNew = !SystemFile.exists(layout.mark)
    if DatabaseHeader.isLogMissing(layout) { throw DatabaseHeader.missingLog(layout) }
    for path in layout.all { SystemFile.closeToOthers(path) }
    let database = try JournalDatabase(layout.database, durability == .synced ? .synced : .relaxed)
    do throws(JournalError) {
      let head: JournalDatabase.Head
      if let found = try database.head() {
        head = found
      } else {
        guard isNew else { throw .damaged(place: layout.database, reason: "the head is missing") }
        let identity = identity()
        head = JournalDatabase.Head(
          epoch: identity.epoch, schema: identity.schema, base: 0, baseDigest: .start)
        try database.write(head)
        try SystemFile.syncDirectory(directory)
      }
      let opening = try JournalOpening(database, head, layout)
      remarks = opening.remarks
      let mark = try SystemFile(layout.mark, O_RDWR | O_CREAT)
      // What a killed process wrote last may be in the kernel's memory alone.
      try Self.syncLog(layout)
      DurableWatermark(revision: opening.last, digest: opening.tip).write(to: mark)
      self.mark = mark
      state = Locked(
        State(
          database: database, head: head, last: opening.last, tip: opening.tip, files: StoreFiles(layout, lock)))
    } catch {
      database.close()
      throw error
    }
    if case .relaxed(let milliseconds) = durability {
      flusher = LogFlusher(path: layout.databaseLog, milliseconds: milliseconds)
    } else {
      flusher = nil
    }
    flusher?.start(
      LogFlusher.Target(position: { [weak self] in self?.present }, settle: { [weak self] in self?.settle($0) }))
  }

  /// Throws if there are remains of a store or of an interrupted restore: a new store must not be created in its place.
  private static func requireNothing(in layout: JournalLayout) throws(JournalError) {
    let isEmpty = try SystemFile.names(in: layout.snapshots).allSatisfy {
      JournalLayout.revision(ofSnapshot: $0) == nil
    }
    guard isEmpty, !SystemFile.exists(layout.mark) else {
      throw .damaged(place: layout.database, reason: "it is missing")
    }
    guard !SystemFile.exists(layout.restoring) else {
      throw .damaged(place: layout.restoring, reason: "a restore was interrupted; run it again")
    }
  }

  /// Opens the journal of a directory for reading, even while another process uses it: changes nothing and cuts nothing
  /// off.
  package init(reading directory: String) throws(JournalError) {
    layout = JournalLayout(directory: directory)
    durability = .synced
    guard SystemFile.exists(layout.database) else {
      throw .unusable("\(directory): the store does not exist")
    }
    let database = try JournalDatabase(layout.database, .readOnly)
    do throws(JournalError) {
      guard let head = try database.head() else {
        throw .damaged(place: layout.database, reason: "the head is missing")
      }
      let last = max(head.base, try database.lastRevision() ?? head.base)
      state = Locked(
        State(database: database, head: head, last: last, tip: .start, files: StoreFiles(layout, nil)))
    } catch {
      database.close()
      throw error
    }
    (lock, mark, flusher, remarks) = (nil, nil, nil, [])
  }

  deinit {
    close()
  }

  /// The epoch and the schema of the journal.
  package var identity: JournalIdentity {
    state.withLock { JournalIdentity(epoch: $0.head.epoch, schema: $0.head.schema) }
  }

  /// The revisions that the journal holds.
  package var bounds: JournalBounds { state.withLock { JournalBounds(base: $0.head.base, last: $0.last) } }

  /// The directory of the files.
  package var directory: String? { layout.directory }

  /// Always false: the journal outlives the process.
  package var isVolatile: Bool { false }

  // MARK: Records

  /// See `TransactionJournal.append(_:after:)`.
  package func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    let (database, last, tip) = try usable()
    let files = files
    guard last == expected else { throw .unexpectedRevision(expected: expected, last: last) }
    try JournalRecord.check(records, follow: expected)
    var entries: [(record: JournalRecord, digest: JournalDigest)] = []
    entries.reserveCapacity(records.count)
    var digest = tip
    var bytes = 0
    for record in records {
      digest = digest.linked(to: record)
      entries.append((record, digest))
      bytes += record.body.count + 32
    }
    try noting { () throws(JournalError) in
      try requireLog(of: database)
      try database.append(entries)
      // Before anything is acknowledged: writes to files that are gone are lost.
      try files.require()
    }
    let end = expected + UInt64(records.count)
    state.withLock { state in
      state.last = end
      state.tip = digest
      state.logPages += bytes / 4096 + 2
    }
    if let flusher {
      flusher.note()
    } else if let mark {
      DurableWatermark(revision: end, digest: digest).write(to: mark)
    }
    arrivals.announce(end)
  }

  /// See `TransactionJournal.records(after:limit:bytes:waiting:)`.
  package func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord] {
    if waiting > .zero { arrivals.wait(beyond: revision, for: waiting) { self.bounds.last } }
    let (database, head, last, isClosed) = state.withLock { ($0.database, $0.head, $0.last, $0.isClosed) }
    guard !isClosed else { throw .unusable("the journal is closed") }
    guard revision >= head.base else { throw .compacted(base: head.base) }
    guard revision < last else { return [] }
    let digest = try database.requireDigest(at: revision, head)
    var records: [JournalRecord] = []
    var size = 0
    _ = try database.read(after: revision, digest, through: last) { record, _ in
      records.append(record)
      size += record.body.count
      return records.count < limit && size < bytes
    }
    return records
  }

  /// See `TransactionJournal.digest(at:)`.
  package func digest(at revision: UInt64) throws(JournalError) -> JournalDigest? {
    let (database, head, last, isClosed) = state.withLock { ($0.database, $0.head, $0.last, $0.isClosed) }
    guard !isClosed else { throw .unusable("the journal is closed") }
    guard revision >= head.base, revision <= last else { return nil }
    return try database.digest(at: revision, head)
  }

  /// The open files.
  private var files: StoreFiles { state.withLock { $0.files } }

  /// Returns the database, the last revision and the digest there. Throws if nothing may be written.
  private func usable() throws(JournalError) -> (JournalDatabase, UInt64, JournalDigest) {
    try state.withLock { state throws(JournalError) in
      if state.isClosed { throw JournalError.unusable("the journal is closed") }
      if mark == nil { throw JournalError.unusable("the journal was opened read-only") }
      if let untrustedReason = state.untrustedReason { throw JournalError.untrusted(untrustedReason) }
      return (state.database, state.last, state.tip)
    }
  }

  // MARK: Maintenance

  /// See `TransactionJournal.maintain()`.
  package func maintain() {
    guard let (database, _, _) = try? usable() else { return }
    guard state.withLock({ $0.logPages > Self.logPageLimit }) else { return }
    // A failed checkpoint is repeated: the pages are then written to their place again, from the log.
    _ = try? database.checkpoint()
    state.withLock { $0.logPages = 0 }
  }

  /// See `TransactionJournal.compact(upTo:)`.
  package func compact(upTo revision: UInt64) throws(JournalError) {
    try maintenance.withLock { _ throws(JournalError) in
      try noting { () throws(JournalError) in
        try requireLog(of: usable().0)
        try removeRecords(upTo: revision)
      }
    }
  }

  private func removeRecords(upTo revision: UInt64) throws(JournalError) {
    let (database, last, _) = try usable()
    let head = state.withLock { $0.head }
    guard revision > head.base else { return }
    guard revision <= last, let snapshot = try snapshots().first(where: { $0.revision == revision }) else {
      throw .invalid("the snapshot of revision \(revision) does not exist")
    }
    var compacted = head
    compacted.base = revision
    compacted.baseDigest = snapshot.digest
    try database.write(compacted)
    state.withLock { $0.head = compacted }
    try Self.syncLog(layout)
    try removeSnapshots { $0 < revision }
    while try database.remove(
      upTo: revision, limit: Self.removalLimit, bytes: Self.removalBytes)
    {
      state.withLock { $0.logPages += 8 }
      // Lets writers go first.
      usleep(Self.removalPause)
    }
  }

  /// Runs `body`, which writes. If its outcome is unknown after an error, nothing is appended until `recover` has
  /// determined it.
  private func noting(_ body: () throws(JournalError) -> Void) throws(JournalError) {
    do throws(JournalError) {
      try body()
    } catch {
      if !error.leavesJournalIntact { state.withLock { $0.untrustedReason = error.description } }
      throw error
    }
  }

  /// Returns the space of removed records to the file system. Must not run concurrently with anything else.
  package func shrink() throws(JournalError) {
    try usable().0.shrink()
    state.withLock { $0.isLogRequired = nil }
  }

  /// Records that the log is needed. Called before each write; does something only the first time.
  private func requireLog(of database: JournalDatabase) throws(JournalError) {
    guard state.withLock({ $0.isLogRequired }) == nil else { return }
    let isInPlace = try database.requireLog()
    state.withLock { $0.isLogRequired = isInPlace }
  }

  private var present: DurableWatermark { state.withLock { DurableWatermark(revision: $0.last, digest: $0.tip) } }

  /// Records that everything up to a position has been synced; nil if the sync failed.
  private func settle(_ position: DurableWatermark?) {
    if let position, let mark { return position.write(to: mark) }
    state.withLock { $0.untrustedReason = "\(layout.databaseLog): cannot be synced" }
  }

  /// See `TransactionJournal.close()`.
  package func close() {
    flusher?.stop()
    let closed = state.withLock { state -> (JournalDatabase, DurableWatermark?)? in
      guard !state.isClosed else { return nil }
      state.isClosed = true
      return (
        state.database, state.untrustedReason == nil ? DurableWatermark(revision: state.last, digest: state.tip) : nil
      )
    }
    guard let (database, position) = closed else { return }
    // If this fails because another process is reading or the disk fails, the next start finds everything in the log,
    // which stays.
    var isSettled = false
    if mark != nil, (try? files.requireDatabase()) != nil { isSettled = (try? database.settle()) != nil }
    database.close()
    // Everything is in the database, and is synced.
    if isSettled, let mark { position?.write(to: mark) }
    lock?.release()
    arrivals.announce(.max)
  }

  // MARK: Snapshots

  /// See `TransactionJournal.snapshots()`.
  package func snapshots() throws(JournalError) -> [JournalSnapshot] {
    let (database, head, last) = state.withLock { ($0.database, $0.head, $0.last) }
    var found: [JournalSnapshot] = []
    for name in try SystemFile.names(in: layout.snapshots).reversed() {
      guard let revision = JournalLayout.revision(ofSnapshot: name), revision >= head.base, revision <= last,
        let file = try? SnapshotFile(path: "\(layout.snapshots)/\(name)"), file.header.revision == revision
      else { continue }
      // A snapshot of another epoch, or of a different chain, would restore records that were never here.
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
    try write(at: revision, milliseconds, to: layout.snapshot(revision), isBackup: false, next)
  }

  private func write(
    at revision: UInt64, _ milliseconds: Int64, to path: String, isBackup: Bool, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    let (database, head, last) = state.withLock { ($0.database, $0.head, $0.last) }
    let digest = try database.digest(at: revision, head)
    guard revision <= last, let digest else { throw .invalid("the journal does not hold revision \(revision)") }
    let header = SnapshotFile.Header(
      epoch: head.epoch, revision: revision, digest: digest, milliseconds: milliseconds, schema: head.schema,
      revocations: try isBackup ? database.revocations() : nil)
    try SnapshotFile.write(header, to: path, next)
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
    // Until the head names it, it does not count as a snapshot of this journal: its schema or its digest differs.
    try SnapshotFile.write(header, to: layout.snapshot(revision), next)
    let rebased = JournalDatabase.Head(epoch: head.epoch, schema: schema, base: revision, baseDigest: digest)
    try database.write(rebased, removingUpTo: revision)
    state.withLock { state in
      state.head = rebased
      state.last = revision
      state.tip = digest
    }
    try Self.syncLog(layout)
    if let mark { DurableWatermark(revision: revision, digest: digest).write(to: mark) }
    try removeSnapshots { $0 < revision }
  }

  /// Syncs the log of the database, if there is one. With relaxed durability a commit alone does not.
  private static func syncLog(_ layout: JournalLayout) throws(JournalError) {
    guard SystemFile.exists(layout.databaseLog) else { return }
    try SystemFile(layout.databaseLog, O_RDWR).sync()
  }

  private func removeSnapshots(where isObsolete: (UInt64) -> Bool) throws(JournalError) {
    for name in try SystemFile.names(in: layout.snapshots) {
      // The file of a writer that did not finish.
      let isDraft = name.hasSuffix(".draft")
      guard isDraft || JournalLayout.revision(ofSnapshot: name).map(isObsolete) == true else { continue }
      try SystemFile.remove("\(layout.snapshots)/\(name)")
    }
  }

  // MARK: Revocations

  /// See `TransactionJournal.revocations()`.
  package func revocations() throws(JournalError) -> [Revocation] {
    try state.withLock { $0.database }.revocations()
  }

  /// See `TransactionJournal.setRevocation(of:to:)`.
  package func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    try maintenance.withLock { _ throws(JournalError) in
      let (database, _, _) = try usable()
      let files = files
      try noting { () throws(JournalError) in
        try requireLog(of: database)
        try database.setRevocation(of: subject, to: milliseconds)
        // Writes to files that are gone are lost.
        try files.require()
      }
      state.withLock { $0.logPages += 4 }
      flusher?.note()
    }
  }

  // MARK: Recovery after a disk failure

  /// Closes and reopens the database, drops the kernel's cache of its files, reads every record back, and removes
  /// records that were written and never acknowledged.
  package func recover() throws(JournalError) {
    try maintenance.withLock { _ throws(JournalError) in try readBack() }
  }

  private func readBack() throws(JournalError) {
    let (old, last, tip, isClosed) = state.withLock { ($0.database, $0.last, $0.tip, $0.isClosed) }
    var head = state.withLock { $0.head }
    guard !isClosed else { throw .unusable("the journal is closed") }
    // If its name were gone, opening it would create an empty one. A missing log is different: SQLite still has it
    // open, and can move its contents into the database.
    try files.requireDatabase()
    if (try? files.require()) == nil { try old.settle() }
    old.close()
    for path in [layout.database, layout.databaseLog] { SystemFile.dropCache(of: path) }
    let database = try JournalDatabase(layout.database, durability == .synced ? .synced : .relaxed)
    state.withLock { ($0.database, $0.files) = (database, StoreFiles(layout, lock)) }
    let isLogInPlace: Bool
    do throws(JournalError) {
      // A compaction whose sync failed may be there nevertheless: then the records have to lead from its base to the
      // end.
      guard let found = try database.head(), found.epoch == head.epoch, found.schema == head.schema,
        (head.base...last).contains(found.base)
      else {
        throw .damaged(place: layout.database, reason: "the head is not what was written")
      }
      head = found
      var link = head.baseDigest
      _ = try database.read(after: head.base, link, through: last) { _, digest in
        link = digest
        return true
      }
      guard link == tip else {
        throw .damaged(place: "\(layout.database), revision \(last)", reason: "it is not what was acknowledged")
      }
      // Also shows that the disk accepts and syncs a write. In one transaction with the record that the log is needed:
      // a second transaction would not be made if the sync of the first failed.
      try database.write(head, removingAfter: last, isLogNeeded: true)
      isLogInPlace = try database.checkpoint()
    } catch {
      state.withLock { $0.untrustedReason = error.description }
      throw error
    }
    state.withLock { state in
      state.head = head
      state.untrustedReason = nil
      state.isLogRequired = isLogInPlace
      state.logPages = 0
    }
  }

  /// See `TransactionJournal.checkPresence()`.
  package func checkPresence() throws(JournalError) {
    guard let (database, _, _) = try? usable() else { return }
    try noting { () throws(JournalError) in try files.require() }
    guard state.withLock({ $0.isLogRequired }) == false, (try? database.checkpoint()) == true else { return }
    state.withLock { $0.isLogRequired = true }
  }

  /// See `TransactionJournal.probe(bytes:)`.
  package func probe(bytes: Int) throws(JournalError) {
    if state.withLock({ $0.untrustedReason != nil }) { try recover() }
    try maintenance.withLock { _ throws(JournalError) in
      let (database, _, _) = try usable()
      try files.requireRoom(bytes)
      let head = state.withLock { $0.head }
      try noting { () throws(JournalError) in
        try files.require()
        try requireLog(of: database)
        try database.write(head)
      }
    }
  }

  // MARK: Backups

  /// Returns true if a directory has a journal, or the remains of one.
  package static func exists(inDirectory directory: String) -> Bool {
    JournalLayout(directory: directory).hasStore
  }

  /// Returns the last revision of a directory's journal that is known to be on the disk; nil if it is unknown. Call it
  /// before the journal is opened for reading, so that the journal holds the revision.
  package static func acknowledgedRevision(inDirectory directory: String) -> UInt64? {
    DurableWatermark.read(JournalLayout(directory: directory))?.revision
  }

  /// Writes the state at a revision that the journal holds to a separate file, as `writeSnapshot` does. Changes nothing
  /// in the journal, and also works on one that was opened for reading.
  package func writeBackup(
    at revision: UInt64, milliseconds: Int64, to path: String, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try write(at: revision, milliseconds, to: path, isBackup: true, next)
  }

  /// Closes and deletes the journal, so that its directory has none. For a journal whose contents another one has
  /// completely.
  package func discard() {
    close()
    // The mark goes last: without the database it shows that something is missing, and without both there is no store.
    for path in [layout.database, layout.databaseLog, "\(layout.database)-shm"] { try? SystemFile.remove(path) }
    try? SystemFile.removeDirectory(layout.snapshots)
    try? SystemFile.remove(layout.mark)
  }
}

extension JournalError {
  /// True if everything that was appended before the failure is unchanged.
  fileprivate var leavesJournalIntact: Bool {
    switch self {
    case .refused, .unexpectedRevision, .invalid, .unusable, .inUse, .compacted: true
    case .untrusted, .damaged: false
    }
  }
}
