/// What can be read of a store's files, whatever has become of them. Changes nothing, and can be made while a server
/// runs; then what is found may be half of before and half of after a compaction, so a problem counts only if it is
/// found twice.
package struct JournalInspection: Sendable {
  /// Something that is not as it was written.
  package struct Problem: Hashable, Sendable, CustomStringConvertible {
    /// The file, with the revision or byte where that is known.
    package let place: String
    /// What is wrong there, as a clause.
    package let reason: String

    /// A problem of these parts.
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

    /// Place and reason in a line.
    package var description: String { "\(place): \(reason)" }
  }

  /// Where reading can begin: at the very beginning, or with a snapshot that is whole.
  package struct Start: Sendable {
    /// The revision of the state that it begins with.
    package let revision: UInt64
    /// Epoch and schema as they stand there.
    package let identity: JournalIdentity
    /// The snapshot with that state; nil where it is empty.
    package let snapshot: StoredSnapshot?
    let digest: JournalDigest
  }

  /// The directory.
  package var directory: String { layout.directory }
  // Stored: where both are worked out of the head each time, the optimizer of Swift 6.3 breaks off.
  /// What the head says; nil where it cannot be read.
  package let identity: JournalIdentity?
  /// Where the records begin by the head; nil where it cannot be read.
  package let base: UInt64?
  /// The last revision of which there is a record, whole or not; the base where there is none.
  package let last: UInt64
  /// The last revision that is known to have been acknowledged; nil where that is not known.
  package var acknowledged: UInt64? { mark?.revision }
  /// The files of snapshots, oldest first.
  package let snapshots: [StoredSnapshot]
  /// Where reading can begin, earliest first.
  package let starts: [Start]
  /// What is wrong apart from the records, which `Reader` reads.
  package private(set) var problems: [Problem] = []
  /// The bytes of the database and its log.
  package let databaseBytes: Int

  private let layout: JournalLayout
  let database: JournalDatabase?
  private let head: JournalDatabase.Head?
  let mark: DurableWatermark?

  /// Reads head, mark and every snapshot of a directory. `schema` is the one that the records were written under, for a
  /// store whose head is damaged and that has no snapshot. Throws `unusable` where there is no store.
  package init(directory: String, schema: String? = nil) throws(JournalError) {
    layout = JournalLayout(directory: directory)
    guard layout.hasStore else {
      throw .unusable("\(directory): there is no store")
    }
    var problems: [Problem] = []
    // In this order: a snapshot is written of what is acknowledged, and acknowledged is what the database has.
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
      problems.append(Problem(place: layout.snapshots, reason: "there is no whole snapshot to begin with\(from)"))
    }
    self.problems = problems
  }

  /// Ends the use of the database.
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
    let reason = SystemFile.exists(layout.mark) ? "it is not whole" : "it is missing"
    problems.append(Problem(place: layout.mark, reason: "\(reason); how far the journal was acknowledged is not known"))
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
    // A snapshot of revision 0 is there where the store was begun anew when it was empty.
    if let beginning, starts.first?.revision != 0 {
      let digest = head?.baseDigest ?? .start
      starts.insert(Start(revision: 0, identity: beginning, snapshot: nil, digest: digest), at: 0)
    }
    return starts
  }
}

extension JournalInspection {
  /// Gives records in order from a start, as far as each is what was written, some at a time.
  package struct Reader {
    /// The last revision that was given, or that of the start.
    package private(set) var revision: UInt64
    /// Why it ends before the last record; nil as long as nothing is wrong.
    package private(set) var problem: Problem?
    /// The digest of the chain at `revision`.
    private(set) var digest: JournalDigest
    /// The digests at the revisions that were asked for.
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

    /// The next records with the digests at them; nil at the end, or where something is wrong.
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

    /// The next records; nil at the end, or where something is wrong.
    package mutating func next() -> [JournalRecord]? {
      nextEntries().map { entries in entries.map(\.record) }
    }
  }

  /// A reader that begins at a start and ends with the last record, or with `last` where that comes earlier.
  package func reader(from start: Start, through last: UInt64 = .max) -> Reader {
    Reader(self, from: start, through: min(last, self.last))
  }

  /// Whether a snapshot or the mark says something else of the records than a reader has found.
  package func problems(of reader: Reader) -> [Problem] {
    var problems: [Problem] = []
    for snapshot in snapshots where snapshot.condition == .whole {
      guard let digest = reader.digests[snapshot.revision], digest != snapshot.header?.digest else { continue }
      problems.append(Problem(place: snapshot.path, reason: "it is a state of other records than the journal has"))
    }
    guard let mark else { return problems }
    if mark.revision > reader.revision {
      problems.append(
        Problem(
          place: layout.database,
          reason: "it is whole up to revision \(reader.revision), and \(mark.revision) was acknowledged"))
    } else if mark.revision > base ?? 0, let digest = reader.digests[mark.revision], digest != mark.digest {
      problems.append(
        Problem(place: "\(layout.database), revision \(mark.revision)", reason: "it is not what was acknowledged"))
    }
    return problems
  }
}
