/// What a repair has done.
package struct JournalRepair: Hashable, Sendable {
  /// What the journal is now.
  package let identity: JournalIdentity
  /// How far it reaches now.
  package let bounds: JournalBounds
  /// The last revision that was found before, whole or not, acknowledged or not.
  package let previousLast: UInt64
  /// The epoch before, where it is another now: something that a client may have seen was given up.
  package let previousEpoch: String?
  /// Where the records began before, where they begin later now.
  package let previousBase: UInt64?
  /// What the files that were replaced or are of no use are called now.
  package let movedAside: [String]
}

extension SQLiteJournal {
  /// Makes a journal of what is whole in a directory, up to and with a revision. What was there before is renamed, and
  /// not changed.
  ///
  /// The journal begins with the earliest state from which the records up to `until` are whole. Where something is
  /// given up that a client may have been told, it gets another epoch, `newEpoch()`: its next revisions would otherwise
  /// be taken for the ones that are gone. With `isEpochNew` it gets one in any case. `milliseconds`, since 1970, goes
  /// into the names of what is moved aside.
  /// `schema` is that of the records, for a store whose head is damaged and that has no snapshot.
  ///
  /// Throws `inUse` where another process has the store, `damaged` where it is not whole up to there, with the last
  /// revision up to which it is; then nothing has changed. One that is interrupted is to be made again, and ends what
  /// the first began.
  package static func repair(
    directory: String, until: UInt64, milliseconds: Int64, schema: String? = nil, isEpochNew: Bool = false,
    newEpoch: () -> String
  ) throws(JournalError) -> JournalRepair {
    let layout = JournalLayout(directory: directory)
    guard layout.hasStore else {
      throw .unusable("\(directory): there is no store")
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

  /// The earliest start from which all records up to a revision are whole, a reader that has come there, and whether a
  /// client may have received something behind it.
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
        place: inspection.directory, reason: "there is no state from which revision \(until) can be made\(first)")
    }
    let reason = failure.map { " (\($0))" } ?? ", where the journal ends"
    throw .damaged(place: inspection.directory, reason: "it is whole up to revision \(best) only\(reason)")
  }

  private static func isGivenUp(in inspection: JournalInspection, behind reader: JournalInspection.Reader) -> Bool {
    guard let mark = inspection.mark, mark.revision <= reader.revision else { return true }
    if let digest = reader.digests[mark.revision], digest != mark.digest { return true }
    // What comes next, is whole and was not acknowledged as far as the mark tells may have been, before a power
    // failure.
    let next = reader.revision + 1
    guard let database = inspection.database, inspection.last >= next else { return false }
    return (try? database.read(after: reader.revision, reader.digest, through: next) { _, _ in true }) != nil
  }
}
