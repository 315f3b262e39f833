/// The readable contents of a store's files, whatever their condition. Changes nothing, and can be created while a
/// server runs; the files may then be read half before and half after a compaction, so a problem counts only if it is
/// found twice.
package struct JournalInspection: Sendable {
  /// Stored data that is not as it was written.
  package struct Problem: Hashable, Sendable, CustomStringConvertible {
    /// The file, with the revision or byte if it is known.
    package let place: String
    /// The reason, as a clause.
    package let reason: String

    /// Creates a problem.
    package init(place: String, reason: String) {
      self.place = place
      self.reason = reason
    }

    init(_ error: JournalError, place: String) {
      if case .damaged(let place, let reason) = error {
        self.init(place: place, reason: reason)
      } else {
        self.init(place: place, reason: error.description)
      }
    }

    /// The place and the reason in one line.
    package var description: String { "\(place): \(reason)" }
  }

  /// A point at which reading can begin: the very beginning, or an intact snapshot.
  package struct Start: Sendable {
    /// The revision of the state at the start.
    package let revision: UInt64
    /// The epoch and the schema recorded there.
    package let identity: JournalIdentity
    /// The snapshot with the state; nil if the state is empty.
    package let snapshot: StoredSnapshot?
    let digest: JournalDigest
  }

  /// The store's directory.
  package var directory: String { layout.directory }
  // Stored, because the optimizer of Swift 6.3 fails if both are computed from the head each time.
  /// The epoch and the schema in the head; nil if the head cannot be read.
  package let identity: JournalIdentity?
  /// The revision after which the records begin according to the head; nil if the head cannot be read.
  package let base: UInt64?
  /// The last revision that has a record, intact or not; the base if there is none.
  package let last: UInt64
  /// The last revision known to have been acknowledged; nil if it is unknown.
  package var acknowledged: UInt64? { mark?.revision }
  /// The snapshot files, oldest first.
  package let snapshots: [StoredSnapshot]
  /// The points at which reading can begin, earliest first.
  package let starts: [Start]
  /// The problems found, except those of the records, which `Reader` reads.
  package private(set) var problems: [Problem] = []
  /// The size of the database and its log, in bytes.
  package let databaseBytes: Int

  private let layout: JournalLayout
  let database: JournalDatabase?
  private let head: JournalDatabase.Head?
  let mark: DurableWatermark?

  /// Reads the head, the mark and every snapshot of a directory. `schema` is the schema of the records, for a store
  /// with a damaged head and no snapshot. Throws `unusable` if there is no store.
  package init(directory: String, schema: String? = nil) throws(JournalError) {
    layout = JournalLayout(directory: directory)
    guard layout.hasStore else {
      throw .unusable("\(directory): the store does not exist")
    }
    var problems: [Problem] = []
    // The order matters: a snapshot holds only acknowledged records, and acknowledged records are in the database.
    let snapshots = Self.snapshots(of: layout, &problems)
    mark = Self.mark(of: layout, &problems)
    (database, head) = Self.database(of: layout, &problems)
    identity = head.map { JournalIdentity(epoch: $0.epoch, schema: $0.schema) }
    base = head?.base
    databaseBytes = SystemFile.size(of: layout.database) + SystemFile.size(of: layout.databaseLog)
    var last = head?.base ?? 0
    do throws(JournalError) {
      last = max(last, try database?.lastRevision() ?? 0)
      _ = try database?.revocations()
    } catch {
      problems.append(Problem(error, place: layout.database))
    }
    self.last = last
    let (head, acknowledged) = (head, mark?.revision ?? 0)
    self.snapshots = snapshots.map { snapshot in
      var snapshot = snapshot
      if let head { snapshot.fit(to: head, last: last, acknowledged: acknowledged) }
      return snapshot
    }
    starts = Self.starts(head, self.snapshots, schema)
    if starts.isEmpty {
      let from = head.map { ", from revision \($0.base) on" } ?? ""
      problems.append(Problem(place: layout.snapshots, reason: "the store has no intact snapshot to begin with\(from)"))
    }
    self.problems = problems
  }

  /// Closes the database.
  package func close() {
    database?.close()
  }

  private static func snapshots(of layout: JournalLayout, _ problems: inout [Problem]) -> [StoredSnapshot] {
    guard SystemFile.exists(layout.snapshots) else { return [] }
    do throws(JournalError) {
      return try SystemFile.names(in: layout.snapshots).compactMap { StoredSnapshot(name: $0, layout) }
    } catch {
      problems.append(Problem(error, place: layout.snapshots))
      return []
    }
  }

  private static func mark(of layout: JournalLayout, _ problems: inout [Problem]) -> DurableWatermark? {
    if let mark = DurableWatermark.read(layout) { return mark }
    let reason = SystemFile.exists(layout.mark) ? "it is damaged" : "it is missing"
    problems.append(Problem(place: layout.mark, reason: "\(reason); the last acknowledged revision is unknown"))
    return nil
  }

  private static func database(
    of layout: JournalLayout, _ problems: inout [Problem]
  ) -> (JournalDatabase?, JournalDatabase.Head?) {
    guard SystemFile.exists(layout.database) else {
      problems.append(Problem(place: layout.database, reason: "it is missing"))
      return (nil, nil)
    }
    if DatabaseHeader.isLogMissing(layout) {
      problems.append(Problem(DatabaseHeader.missingLog(layout), place: layout.databaseLog))
    }
    var database: JournalDatabase?
    do throws(JournalError) {
      let found = try JournalDatabase(layout.database, .readOnly)
      database = found
      guard let head = try found.head() else {
        throw .damaged(place: layout.database, reason: "the head is missing")
      }
      return (found, head)
    } catch {
      problems.append(Problem(error, place: layout.database))
      return (database, nil)
    }
  }

  private static func starts(
    _ head: JournalDatabase.Head?, _ snapshots: [StoredSnapshot], _ schema: String?
  ) -> [Start] {
    var starts: [Start] = []
    for snapshot in snapshots where snapshot.condition == .whole {
      guard let header = snapshot.header else { continue }
      let identity = JournalIdentity(epoch: header.epoch, schema: header.schema)
      starts.append(
        Start(revision: snapshot.revision, identity: identity, snapshot: snapshot, digest: header.digest))
    }
    let beginning: JournalIdentity?
    if let head {
      beginning = head.base == 0 ? JournalIdentity(epoch: head.epoch, schema: head.schema) : nil
    } else {
      beginning = starts.first?.identity ?? schema.map { JournalIdentity(epoch: "", schema: $0) }
    }
    // There is a snapshot of revision 0 if the store was rebased while it was empty.
    if let beginning, starts.first?.revision != 0 {
      let digest = head?.baseDigest ?? .start
      starts.insert(Start(revision: 0, identity: beginning, snapshot: nil, digest: digest), at: 0)
    }
    return starts
  }
}

extension JournalInspection {
  /// Reads the intact records in order from a start, some at a time.
  package struct Reader {
    /// The last revision read, or that of the start.
    package private(set) var revision: UInt64
    /// The problem that ended reading before the last record; nil while there is none.
    package private(set) var problem: Problem?
    /// The digest of the chain at `revision`.
    private(set) var digest: JournalDigest
    /// The digests at the revisions of interest: those of the snapshots and the acknowledged one.
    private(set) var digests: [UInt64: JournalDigest] = [:]

    private let database: JournalDatabase?
    private let last: UInt64
    private let place: String
    private let wanted: Set<UInt64>

    private static let chunkRecords = 4096
    private static let chunkBytes = 8 * 1024 * 1024

    init(_ inspection: JournalInspection, from start: Start, through last: UInt64) {
      database = inspection.database
      place = inspection.layout.database
      wanted = Set(inspection.snapshots.map(\.revision) + [inspection.acknowledged ?? 0])
      self.last = last
      revision = start.revision
      digest = start.digest
      if wanted.contains(revision) { digests[revision] = digest }
    }

    /// Returns the next records with their digests; nil at the end, or if there is a problem.
    mutating func nextEntries() -> [(record: JournalRecord, digest: JournalDigest)]? {
      guard problem == nil, revision < last else { return nil }
      guard let database else {
        problem = Problem(place: place, reason: "it cannot be read")
        return nil
      }
      var entries: [(record: JournalRecord, digest: JournalDigest)] = []
      var bytes = 0
      do throws(JournalError) {
        _ = try database.read(after: revision, digest, through: last) { record, digest in
          entries.append((record, digest))
          bytes += record.body.count
          return entries.count < Self.chunkRecords && bytes < Self.chunkBytes
        }
      } catch {
        problem = Problem(error, place: "\(place), revision \(revision + UInt64(entries.count) + 1)")
      }
      for (record, digest) in entries where wanted.contains(record.revision) { digests[record.revision] = digest }
      guard let newest = entries.last else { return nil }
      (revision, digest) = (newest.record.revision, newest.digest)
      return entries
    }

    /// Returns the next records; nil at the end, or if there is a problem.
    package mutating func next() -> [JournalRecord]? {
      nextEntries().map { entries in entries.map(\.record) }
    }
  }

  /// Returns a reader that begins at a start and ends with the last record, or with `last` if that is earlier.
  package func reader(from start: Start, through last: UInt64 = .max) -> Reader {
    Reader(self, from: start, through: min(last, self.last))
  }

  /// Returns the contradictions between the records that a reader has read and the snapshots or the mark.
  package func problems(of reader: Reader) -> [Problem] {
    var problems: [Problem] = []
    for snapshot in snapshots where snapshot.condition == .whole {
      guard let digest = reader.digests[snapshot.revision], digest != snapshot.header?.digest else { continue }
      problems.append(Problem(place: snapshot.path, reason: "its records differ from the journal's"))
    }
    guard let mark else { return problems }
    if mark.revision > reader.revision {
      problems.append(
        Problem(
          place: layout.database,
          reason: "it is whole up to revision \(reader.revision), but revision \(mark.revision) was acknowledged"))
    } else if mark.revision > base ?? 0, let digest = reader.digests[mark.revision], digest != mark.digest {
      problems.append(
        Problem(place: "\(layout.database), revision \(mark.revision)", reason: "it is not what was acknowledged"))
    }
    return problems
  }
}
