/// The result of a repair.
package struct JournalRepair: Hashable, Sendable {
  /// The epoch and the schema of the repaired journal.
  package let identity: JournalIdentity
  /// The revisions that the repaired journal holds.
  package let bounds: JournalBounds
  /// The last revision found before the repair, intact or not, acknowledged or not.
  package let previousLast: UInt64
  /// The epoch before the repair, if it changed because something was given up that a client may have seen; nil
  /// otherwise.
  package let previousEpoch: String?
  /// The revision after which the records began before the repair, if they begin later now; nil otherwise.
  package let previousBase: UInt64?
  /// The new paths of the files that were replaced or are unusable.
  package let movedAside: [String]
}

extension SQLiteJournal {
  /// Rebuilds a journal from the intact data in a directory, up to and including a revision. The previous files are
  /// renamed, not changed.
  ///
  /// The journal begins with the earliest state from which the records up to `until` are intact. If something is given
  /// up that a client may have received, the journal gets another epoch, `newEpoch()`: otherwise its next revisions
  /// would be confused with the lost ones. With `isEpochNew` it gets one in any case. `milliseconds`, since 1970,
  /// becomes part of the names of the files that are moved aside. `schema` is the schema of the records, for a store
  /// with a damaged head and no snapshot.
  ///
  /// Throws `inUse` if another process uses the store, and `damaged` if it is not intact up to that revision, with the
  /// last revision up to which it is; in both cases nothing has changed. Repeat a repair that was interrupted; it
  /// completes what the first one began.
  package static func repair(
    directory: String, until: UInt64, milliseconds: Int64, schema: String? = nil, isEpochNew: Bool = false,
    newEpoch: () -> String
  ) throws(JournalError) -> JournalRepair {
    let layout = JournalLayout(directory: directory)
    guard layout.hasStore else {
      throw .unusable("\(directory): the store does not exist")
    }
    let lock = try DirectoryLock(layout)
    defer { withExtendedLifetime(lock) {} }
    var replacement = JournalReplacement(layout, milliseconds: milliseconds)
    try replacement.resume()
    let inspection = try JournalInspection(directory: directory, schema: schema)
    defer { inspection.close() }
    let (start, reader, isGivenUp) = try source(in: inspection, until: until)
    let found = inspection.identity ?? start.identity
    let isNewEpoch = isEpochNew || isGivenUp || found.epoch.isEmpty
    let identity = isNewEpoch ? JournalIdentity(epoch: newEpoch(), schema: start.identity.schema) : start.identity
    try replacement.prepare(inspection, start, reader, identity)
    inspection.close()
    try replacement.swap(mark: DurableWatermark(revision: until, digest: reader.digest))
    return JournalRepair(
      identity: identity, bounds: JournalBounds(base: start.revision, last: until),
      previousLast: max(inspection.last, inspection.acknowledged ?? 0),
      previousEpoch: isNewEpoch && !found.epoch.isEmpty ? found.epoch : nil,
      previousBase: inspection.base.flatMap { $0 < start.revision ? $0 : nil }, movedAside: replacement.movedAside)
  }

  /// Returns the earliest start from which all records up to a revision are intact, a reader that has reached that
  /// revision, and whether a client may have received something after it.
  private static func source(
    in inspection: JournalInspection, until: UInt64
  ) throws(JournalError) -> (JournalInspection.Start, JournalInspection.Reader, isGivenUp: Bool) {
    var best: UInt64?
    var failure: JournalInspection.Problem?
    for start in inspection.starts where start.revision <= until {
      var reader = inspection.reader(from: start, through: until)
      while reader.nextEntries() != nil {}
      if reader.revision == until {
        return (start, reader, isGivenUp(in: inspection, behind: reader))
      }
      best = max(best ?? 0, reader.revision)
      failure = reader.problem ?? failure
    }
    guard let best else {
      let first = inspection.starts.first.map { "; the first is of revision \($0.revision)" } ?? ""
      throw .damaged(
        place: inspection.directory, reason: "no intact state begins at or before revision \(until)\(first)")
    }
    let reason = failure.map { " (\($0))" } ?? ", where the journal ends"
    throw .damaged(place: inspection.directory, reason: "it is whole up to revision \(best) only\(reason)")
  }

  private static func isGivenUp(in inspection: JournalInspection, behind reader: JournalInspection.Reader) -> Bool {
    guard let mark = inspection.mark, mark.revision <= reader.revision else { return true }
    if let digest = reader.digests[mark.revision], digest != mark.digest { return true }
    // The next record, if it is intact, may have been acknowledged even if the mark is before it: the mark may date
    // from before a power failure.
    let next = reader.revision + 1
    guard let database = inspection.database, inspection.last >= next else { return false }
    return (try? database.read(after: reader.revision, reader.digest, through: next) { _, _ in true }) != nil
  }
}
