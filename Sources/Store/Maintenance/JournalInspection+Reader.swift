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
