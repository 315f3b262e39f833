import Glibc
package import KeyValueModel

/// The record of every committed transaction, in order, with snapshots from which a state can be restored without
/// reading all records. It stores bytes and revisions and does not interpret them.
///
/// One writer appends, writes snapshots and compacts; any thread reads. The effect of a method that has returned
/// survives the end of the process, and a power failure unless the journal was opened with relaxed durability. A method
/// that throws, or during which the process ends, has no effect at all.
///
/// The protocol also suits a replicated log: an append names the revision that it follows, and a reader can wait for
/// the records after a revision.
package protocol TransactionJournal: AnyObject, Sendable {
  /// The epoch and the schema of the journal.
  var identity: JournalIdentity { get }
  /// The revisions that the journal holds.
  var bounds: JournalBounds { get }
  /// The directory of the journal, which is not disclosed to clients; nil if the journal has none.
  var directory: String? { get }
  /// True if the journal ends with the process, so that it needs no snapshots.
  var isVolatile: Bool { get }

  /// Appends records that follow on `expected` and on one another, all or none of them, with one sync. Throws
  /// `unexpectedRevision` if `expected` is not the last revision, and `refused` or `untrusted` if the disk fails.
  func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError)

  /// Returns the records after a revision, oldest first: at least one if there is one, at most `limit`, and no further
  /// one once they total `bytes`. If there is none, waits for one for at most `waiting`. Throws `compacted` if the
  /// records begin later, and `damaged` if one is not as it was written. Any thread; never waits for a disk write.
  func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord]

  /// Returns the digest of the chain of records at a revision; nil if the journal does not hold the revision. Two
  /// journals with the same digest have the same history up to there. Any thread.
  func digest(at revision: UInt64) throws(JournalError) -> JournalDigest?

  /// Returns the usable snapshots, newest first. A snapshot that cannot be read as one at all throws `damaged` when it
  /// is read, not here.
  func snapshots() throws(JournalError) -> [JournalSnapshot]

  /// Writes a snapshot of the state at a revision that the journal holds, as blocks of bytes until `next` returns nil.
  /// Slow, but does not block `append`.
  func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError)

  /// Passes the blocks of a snapshot to `receive` in order. Throws `damaged` if the snapshot is not as it was written;
  /// blocks that were already received must then be discarded.
  func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws

  /// Returns the path of a snapshot's file, as `SnapshotFile` reads it; nil if the snapshot is not in a file.
  func file(of snapshot: JournalSnapshot) -> String?

  /// Removes the records up to and including a revision, and the snapshots before it. Throws `invalid` if there is no
  /// snapshot at the revision, unless the journal is volatile.
  func compact(upTo revision: UInt64) throws(JournalError)

  /// Restarts the journal under another schema from the state that `next` provides: a snapshot of `revision`, which is
  /// the last revision or one more. Everything before it is removed.
  func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError)

  /// Returns the revocations of tokens, one for each `sub`, compared by its bytes. They have no revision and do not
  /// depend on the records. Throws `damaged` if one is not as it was written.
  func revocations() throws(JournalError) -> [Revocation]

  /// Sets the revocation for a `sub` to a time in milliseconds since 1970, replacing any earlier one; nil removes it.
  /// Any thread. After it throws `untrusted`, the change may or may not have been made.
  func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError)

  /// Reads everything back after `untrusted`, from the disk and not from memory, and removes records that were never
  /// acknowledged. Throws the error that remains.
  func recover() throws(JournalError)

  /// Checks that the files of the journal still exist; throws `untrusted` if they do not. Call it about every second,
  /// from any thread.
  func checkPresence() throws(JournalError)

  /// Checks whether a write of `bytes` would succeed now, after one has failed; first does the work of `recover` if
  /// that is due. Throws the error that remains. Called by the writer.
  func probe(bytes: Int) throws(JournalError)

  /// Does deferrable work that keeps the files small. Called by the writer after it has responded.
  func maintain()

  /// Closes the journal. Everything is synced; further calls throw `unusable`.
  func close()
}

extension TransactionJournal {
  /// Returns the records after a revision and through `last`, as `records(after:limit:bytes:waiting:)` does: records
  /// that are written but not yet published are left out.
  package func records(
    after revision: Revision, through last: Revision, limit: Int, bytes: Int
  ) throws(JournalError) -> ArraySlice<JournalRecord> {
    guard revision < last else { return [] }
    return try records(after: revision, limit: limit, bytes: bytes, waiting: .zero).prefix { $0.revision <= last }
  }

  /// Returns nil.
  package func file(of snapshot: JournalSnapshot) -> String? { nil }

  /// Returns the description of an error for clients, without the directory.
  package func publicReason(_ error: JournalError) -> String {
    guard let directory, !directory.isEmpty else { return error.description }
    let text = error.description.replacing("\(directory)/", with: "")
    return text.hasPrefix("\(directory): ") ? "the store" + text.dropFirst(directory.count) : text
  }

  /// Returns the position of the journal's ends. Throws `damaged` if their digests are missing.
  package func position() throws(JournalError) -> JournalPosition {
    let bounds = bounds
    guard let baseDigest = try digest(at: bounds.base), let digest = try digest(at: bounds.last) else {
      throw .damaged(place: directory ?? "the journal", reason: "a digest of its ends is missing")
    }
    return JournalPosition(identity: identity, bounds: bounds, baseDigest: baseDigest, digest: digest)
  }

  /// The total size of the files in the directory, in bytes; 0 if the journal has no directory.
  package var fileBytes: Int {
    guard let directory, let folder = opendir(directory) else { return 0 }
    defer { closedir(folder) }
    var bytes = 0
    while let entry = readdir(folder) {
      var status = stat()
      let isFile = withUnsafePointer(to: &entry.pointee.d_name) { name in
        name.withMemoryRebound(to: CChar.self, capacity: 256) { fstatat(dirfd(folder), $0, &status, 0) == 0 }
      }
      // A file may be removed during the iteration.
      if isFile, status.st_mode & S_IFMT == S_IFREG { bytes += Int(status.st_size) }
    }
    return bytes
  }
}

/// A stored state.
package struct JournalSnapshot: Hashable, Sendable {
  /// The last revision included in the snapshot.
  package let revision: UInt64
  /// The digest of the chain of records at this revision.
  package let digest: JournalDigest

  /// Creates a reference to a snapshot.
  package init(revision: UInt64, digest: JournalDigest) {
    self.revision = revision
    self.digest = digest
  }
}

/// The identity of a journal: its epoch and its schema.
package struct JournalIdentity: Hashable, Sendable, Codable {
  /// The random word that distinguishes this store's cursors from those of any other store.
  package let epoch: String
  /// The text of the schema with which the records were written.
  package let schema: String

  /// Creates an identity.
  package init(epoch: String, schema: String) {
    self.epoch = epoch
    self.schema = schema
  }
}

/// The range of revisions that a journal holds.
package struct JournalBounds: Hashable, Sendable {
  /// The revision after which the records begin: 0 if the journal was never compacted.
  package let base: UInt64
  /// The last revision that the journal holds; `base` if it has no records.
  package let last: UInt64

  /// Creates bounds.
  package init(base: UInt64, last: UInt64) {
    self.base = base
    self.last = last
  }
}

/// A journal's identity and bounds, with the digests of both ends, known without access to the journal.
package struct JournalPosition: Hashable, Sendable {
  /// The epoch and the schema of the journal.
  package let identity: JournalIdentity
  /// The revisions that the journal holds.
  package let bounds: JournalBounds
  /// The digest at the revision after which the records begin.
  package let baseDigest: JournalDigest
  /// The digest at the last revision.
  package let digest: JournalDigest
}

/// An error of a journal.
package enum JournalError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Another writer has appended in the meantime, or the caller's revision is wrong: nothing was appended.
  case unexpectedRevision(expected: UInt64, last: UInt64)
  /// The disk refused the write; nothing was appended and earlier contents are unchanged. The next attempt may succeed.
  case refused(String)
  /// It is unknown what reached the disk: nothing is appended until `recover` has read everything back.
  case untrusted(String)
  /// Stored data is not as it was written: its place, and the reason.
  case damaged(place: String, reason: String)
  /// The records up to the revision are no longer kept.
  case compacted(base: UInt64)
  /// Another process uses the store.
  case inUse(String)
  /// The journal cannot be opened, for a reason that a retry does not change: a later version made it, permission is
  /// missing, or the directory does not exist.
  case unusable(String)
  /// The call contradicts the journal's contents: for example, a snapshot of a revision that the journal does not hold.
  case invalid(String)

  /// The reason as text.
  package var description: String {
    switch self {
    case .unexpectedRevision(let expected, let last):
      "the journal ends with revision \(last), not with \(expected)"
    case .refused(let reason), .untrusted(let reason), .inUse(let reason), .unusable(let reason), .invalid(let reason):
      reason
    case .damaged(let place, let reason): "\(place): \(reason)"
    case .compacted(let base): "the records up to revision \(base) are no longer kept"
    }
  }

  /// Returns the next block of a state. Throws `invalid` if the state cannot be encoded.
  package static func block(_ next: () throws -> [UInt8]?) throws(JournalError) -> [UInt8]? {
    do {
      return try next()
    } catch {
      throw .invalid("the state cannot be encoded: \(error)")
    }
  }
}

/// A revocation of the tokens of one `sub` that were issued before a time.
package struct Revocation: Hashable, Sendable {
  /// The `sub` of the tokens.
  package let subject: String
  /// The time, in milliseconds since 1970.
  package let milliseconds: Int64

  /// Creates a revocation.
  package init(subject: String, milliseconds: Int64) {
    self.subject = subject
    self.milliseconds = milliseconds
  }

  /// The bytes of the `sub`, which identify it; equal texts may have different bytes.
  package var key: [UInt8] { Array(subject.utf8) }

  /// Returns one revocation for each `sub`, with the later of the times.
  static func merged(_ some: [Revocation], _ others: [Revocation]) -> [Revocation] {
    let bySubject = Dictionary((some + others).map { ($0.key, $0) }) { one, other in
      one.milliseconds > other.milliseconds ? one : other
    }
    return Array(bySubject.values)
  }

  /// The digest of the revocation, which verifies that it is as it was written.
  package var digest: JournalDigest {
    JournalDigest.start.linked(
      to: withUnsafeBytes(of: milliseconds.littleEndian) { Array($0) } + key)
  }
}

/// The format in the header of a backup.
extension Revocation: Codable {
  private enum CodingKeys: String, CodingKey {
    case subject = "sub"
    case milliseconds = "before"
  }
}
