import Glibc
package import KeyValueModel

/// The record of every committed transaction, in order, with snapshots from which a state can be made without all of
/// them. It holds bytes and revisions and knows nothing of what they mean.
///
/// One writer appends, writes snapshots and compacts; any thread reads. Whatever a method has done when it returns
/// survives the end of the process, and of the machine's power unless the journal was opened with relaxed durability;
/// what it has not done when it throws or the process ends, it has not done at all.
///
/// Made to fit a log that is replicated as well: an append names the revision that it follows, and a reader can wait
/// for what comes after a revision.
package protocol TransactionJournal: AnyObject, Sendable {
  /// What the journal is.
  var identity: JournalIdentity { get }
  /// How far it reaches.
  var bounds: JournalBounds { get }
  /// The directory that it is in, which is no business of clients; nil where it is in none.
  var directory: String? { get }
  /// Whether it ends with the process, so that it needs no snapshots.
  var isVolatile: Bool { get }

  /// Appends records that follow on one another and on `expected`, all or none of them, with one sync. Throws
  /// `unexpectedRevision` where `expected` is not the last revision, `refused` and `untrusted` when the disk fails.
  func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError)

  /// The records after a revision, oldest first: as many as there are, `limit` at most, and no more once they have come
  /// to `bytes` in all, but at least one. Where there is none, waits for one as long as `waiting` says. Throws
  /// `compacted` where they begin later, `damaged` where one is not what was written. Any thread; never waits for a
  /// disk that writes.
  func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord]

  /// The digest of the chain of records at a revision; nil where the journal does not reach there. Two journals with
  /// the same one have the same history up to there. Any thread.
  func digest(at revision: UInt64) throws(JournalError) -> JournalDigest?

  /// The snapshots that can be used, newest first. One that cannot be read as a snapshot at all is `damaged` when it is
  /// read, not here.
  func snapshots() throws(JournalError) -> [JournalSnapshot]

  /// Writes a snapshot of the state at a revision that the journal holds, as blocks of bytes until `next` gives nil.
  /// Slow, and not in the way of `append`.
  func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError)

  /// Gives the blocks of a snapshot in order. Throws `damaged` where it is not what was written; then what was given
  /// before is of no use.
  func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws

  /// The file that a snapshot is in, as `SnapshotFile` reads it; nil where it is in none.
  func file(of snapshot: JournalSnapshot) -> String?

  /// Forgets the records up to and with a revision, and the snapshots before it. Throws `invalid` where there is no
  /// snapshot at the revision, unless the journal is volatile.
  func compact(upTo revision: UInt64) throws(JournalError)

  /// Begins anew under another schema, with the state that `next` gives: a snapshot of `revision`, the last one or one
  /// more, before which everything is forgotten.
  func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError)

  /// The revocations of tokens that are kept, one of each `sub`, by its bytes. They have no revision, and nothing that
  /// becomes of the records touches them. Throws `damaged` where one is not what was written.
  func revocations() throws(JournalError) -> [Revocation]

  /// Keeps a revocation of a `sub`, of a time in milliseconds since 1970, in the place of the one there was; nil takes
  /// that away, if there is one. Any thread. Where it throws `untrusted`, it may be done or not.
  func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError)

  /// Reads everything back after `untrusted`, from the disk and not from memory, and takes away what was never
  /// acknowledged. Throws what is still wrong.
  func recover() throws(JournalError)

  /// Looks whether what it is made of is still there; throws `untrusted` where it is not. To be called every second or
  /// so, from any thread.
  func checkPresence() throws(JournalError)

  /// Finds out whether a write of so many bytes would be taken now, after one was not; first does what `recover` does,
  /// where that is due. Throws what is still wrong. To be called by the writer.
  func probe(bytes: Int) throws(JournalError)

  /// Does what keeps the files small and can wait. To be called by the writer after it has responded.
  func maintain()

  /// Ends the use of the journal. Everything is synced; further calls throw `unusable`.
  func close()
}

extension TransactionJournal {
  /// The records after a revision and up to another, as `records(after:limit:bytes:waiting:)` gives them: what is
  /// written down and not yet published is left out.
  package func records(
    after revision: Revision, through last: Revision, limit: Int, bytes: Int
  ) throws(JournalError) -> ArraySlice<JournalRecord> {
    guard revision < last else { return [] }
    return try records(after: revision, limit: limit, bytes: bytes, waiting: .zero).prefix { $0.revision <= last }
  }

  /// None.
  package func file(of snapshot: JournalSnapshot) -> String? { nil }

  /// An error in words that can be told to clients: without the directory.
  package func publicReason(_ error: JournalError) -> String {
    guard let directory, !directory.isEmpty else { return error.description }
    let text = error.description.replacing("\(directory)/", with: "")
    return text.hasPrefix("\(directory): ") ? "the store" + text.dropFirst(directory.count) : text
  }

  /// The position of its ends. Throws `damaged` where the digests are not there.
  package func position() throws(JournalError) -> JournalPosition {
    let bounds = bounds
    guard let baseDigest = try digest(at: bounds.base), let digest = try digest(at: bounds.last) else {
      throw .damaged(place: directory ?? "the journal", reason: "a digest of its ends is missing")
    }
    return JournalPosition(identity: identity, bounds: bounds, baseDigest: baseDigest, digest: digest)
  }

  /// What the files of the directory take, in bytes; 0 where it is in none.
  package var fileBytes: Int {
    guard let directory, let folder = opendir(directory) else { return 0 }
    defer { closedir(folder) }
    var bytes = 0
    while let entry = readdir(folder) {
      var status = stat()
      let isFile = withUnsafePointer(to: &entry.pointee.d_name) { name in
        name.withMemoryRebound(to: CChar.self, capacity: 256) { fstatat(dirfd(folder), $0, &status, 0) == 0 }
      }
      // A file may go while the others are looked at.
      if isFile, status.st_mode & S_IFMT == S_IFREG { bytes += Int(status.st_size) }
    }
    return bytes
  }
}

/// A state that was written down.
package struct JournalSnapshot: Hashable, Sendable {
  /// The last revision that is in it.
  package let revision: UInt64
  /// The digest of the chain of records at this revision.
  package let digest: JournalDigest

  /// A snapshot of these.
  package init(revision: UInt64, digest: JournalDigest) {
    self.revision = revision
    self.digest = digest
  }
}

/// What a journal says of itself.
package struct JournalIdentity: Hashable, Sendable, Codable {
  /// The random word that tells this store's cursors from those of any other.
  package let epoch: String
  /// The text of the schema under which its records were written.
  package let schema: String

  /// An identity of these parts.
  package init(epoch: String, schema: String) {
    self.epoch = epoch
    self.schema = schema
  }
}

/// How far a journal reaches.
package struct JournalBounds: Hashable, Sendable {
  /// The revision after which its records begin: 0 for one that was never compacted.
  package let base: UInt64
  /// The last revision that it holds; `base` where it has no record.
  package let last: UInt64

  /// Bounds of these ends.
  package init(base: UInt64, last: UInt64) {
    self.base = base
    self.last = last
  }
}

/// What is known of a journal without asking it: what it is, and how far it came, with the digests of both ends.
package struct JournalPosition: Hashable, Sendable {
  /// What it is.
  package let identity: JournalIdentity
  /// How far it reaches.
  package let bounds: JournalBounds
  /// The digest at the revision after which the records begin.
  package let baseDigest: JournalDigest
  /// The digest at the last revision.
  package let digest: JournalDigest
}

/// Why a journal could not do what it was asked.
package enum JournalError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Another writer has appended meanwhile, or the caller has lost count: nothing was appended.
  case unexpectedRevision(expected: UInt64, last: UInt64)
  /// The disk refused the write; nothing was appended and what was there before is as it was. The next attempt may
  /// succeed.
  case refused(String)
  /// It is not known what reached the disk: nothing is appended until `recover` has read everything back.
  case untrusted(String)
  /// What is kept is not what was written: where, and what is wrong there.
  case damaged(place: String, reason: String)
  /// The records up to the revision are no longer kept.
  case compacted(base: UInt64)
  /// Another process has the store.
  case inUse(String)
  /// It cannot be opened, for a reason that no retry changes: made by a later version, no permission, no directory.
  case unusable(String)
  /// What was asked contradicts what the journal holds: a snapshot of a revision that it has not, or the like.
  case invalid(String)

  /// The reason in words.
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

  /// Returns the next block of a state. Throws `invalid` if the state cannot be written down.
  package static func block(_ next: () throws -> [UInt8]?) throws(JournalError) -> [UInt8]? {
    do {
      return try next()
    } catch {
      throw .invalid("the state cannot be written down: \(error)")
    }
  }
}

/// Tokens of one `sub` are refused that were issued before a time.
package struct Revocation: Hashable, Sendable {
  /// The `sub` of the tokens.
  package let subject: String
  /// The time, in milliseconds since 1970.
  package let milliseconds: Int64

  /// A revocation of these parts.
  package init(subject: String, milliseconds: Int64) {
    self.subject = subject
    self.milliseconds = milliseconds
  }

  /// What tells the `sub` from every other: its bytes, where equal texts may have different ones.
  package var key: [UInt8] { Array(subject.utf8) }

  /// One of each `sub`, with the later of the times.
  static func merged(_ some: [Revocation], _ others: [Revocation]) -> [Revocation] {
    let bySubject = Dictionary((some + others).map { ($0.key, $0) }) { one, other in
      one.milliseconds > other.milliseconds ? one : other
    }
    return Array(bySubject.values)
  }

  /// The digest of all of it, by which it is known to be what was written.
  package var digest: JournalDigest {
    JournalDigest.start.linked(
      to: withUnsafeBytes(of: milliseconds.littleEndian) { Array($0) } + key)
  }
}

/// As it stands in the header of a backup.
extension Revocation: Codable {
  private enum CodingKeys: String, CodingKey {
    case subject = "sub"
    case milliseconds = "before"
  }
}
