package import KeyValueModel

/// Reads a store completely and replays every record, to check that everything written is there and leads to the same
/// objects. Changes nothing, and can run while a server runs.
package struct StoreVerification {
  /// The result of a verification.
  package struct Report: Sendable {
    /// The epoch and the schema; nil if they cannot be read.
    package var identity: JournalIdentity?
    /// The revision after which the records begin; nil if it cannot be read.
    package var base: Revision?
    /// The last revision that has a record.
    package var last: Revision = 0
    /// The last revision known to have been acknowledged; nil if it is unknown.
    package var acknowledged: Revision?
    /// The revision up to which the store can be restored, whatever else is wrong; nil if it cannot be restored at all.
    package var goodThrough: Revision?
    /// The number of objects at `goodThrough`.
    package var objects = 0
    /// The number of records replayed.
    package var records = 0
    /// The snapshot files, oldest first.
    package var snapshots: [StoredSnapshot] = []
    /// The number of snapshots compared with the state that the records lead to.
    package var comparedSnapshots = 0
    /// The size of the database with its log, in bytes.
    package var databaseBytes = 0
    /// The data that is not as it was written.
    package var problems: [JournalInspection.Problem] = []
    /// Remarks for the operator that are not problems.
    package var remarks: [String] = []
  }

  private let inspection: JournalInspection
  private var report = Report()

  /// The maximum number of attempts if each finds different problems because a server compacts meanwhile.
  private static let attempts = 5

  private init(_ inspection: JournalInspection) {
    self.inspection = inspection
    report.identity = inspection.identity
    report.base = inspection.base
    report.last = inspection.last
    report.acknowledged = inspection.acknowledged
    report.snapshots = inspection.snapshots
    report.databaseBytes = inspection.databaseBytes
    report.problems = inspection.problems
  }

  /// Verifies the store of a directory. `schema` is the schema of the records, for a store in which it can no longer be
  /// read. Throws if there is no store.
  package static func run(directory: String, schema: String? = nil) throws(StoreError) -> Report {
    var before: Set<JournalInspection.Problem>?
    var attempt = 0
    while true {
      let report: Report
      do throws(JournalError) {
        let inspection = try JournalInspection(directory: directory, schema: schema)
        defer { inspection.close() }
        var verification = StoreVerification(inspection)
        verification.readAll()
        report = verification.report
      } catch {
        throw .journal(error)
      }
      let found = Set(report.problems)
      if found.isEmpty || found == before { return report }
      attempt += 1
      if attempt == attempts { return report }
      before = found
    }
  }

  /// Replays all records, restarting from a later snapshot after records that are damaged.
  private mutating func readAll() {
    noteSnapshots()
    var starts = inspection.starts[...]
    while let start = starts.popFirst() {
      var reader = inspection.reader(from: start)
      let isUnderstood = carryOut(from: start, &reader)
      report.problems += inspection.problems(of: reader)
      guard isUnderstood, let problem = reader.problem else { return }
      if let mark = inspection.acknowledged, reader.revision >= mark {
        // The server would cut it off at the start.
        report.remarks.append("\(problem); it was not acknowledged, and is cut off when the store is opened")
        return
      }
      report.problems.append(problem)
      starts = starts.drop { $0.revision <= reader.revision }
    }
  }

  private mutating func noteSnapshots() {
    for snapshot in inspection.snapshots {
      switch snapshot.condition {
      case .whole: break
      case .damaged(let reason):
        report.problems.append(JournalInspection.Problem(place: "snapshots/\(snapshot.name)", reason: reason))
      case .unused(let reason): report.remarks.append("snapshots/\(snapshot.name) is not used: \(reason)")
      }
    }
  }

  /// Replays the intact records. Returns false if one cannot be applied, or leads to a state other than a snapshot's.
  private mutating func carryOut(
    from start: JournalInspection.Start, _ reader: inout JournalInspection.Reader
  ) -> Bool {
    guard var model = model(at: start) else { return false }
    take(model)
    while let records = reader.next() {
      for record in records {
        do {
          _ = try model.commit(record.transaction())
        } catch let error as ModelError {
          return fail("revision \(record.revision)", "it cannot be replayed: \(error.detail)")
        } catch {
          return fail("revision \(record.revision)", "it cannot be decoded: \(error)")
        }
        report.records += 1
        for snapshot in inspection.snapshots
        where snapshot.revision == model.revision && snapshot.condition == .whole {
          guard isSame(model.state, as: snapshot) else {
            return fail(
              "snapshots/\(snapshot.name)", "it differs from the state of the records up to revision \(model.revision)")
          }
          report.comparedSnapshots += 1
        }
        take(model)
      }
    }
    return true
  }

  private mutating func take(_ model: borrowing Model) {
    report.goodThrough = model.revision
    report.objects = model.state.count
  }

  private mutating func fail(_ place: String, _ reason: String) -> Bool {
    report.problems.append(JournalInspection.Problem(place: place, reason: reason))
    return false
  }

  private mutating func model(at start: JournalInspection.Start) -> Model? {
    do {
      let schema = try Schema(yaml: start.identity.schema)
      guard let snapshot = start.snapshot else { return Model(schema: schema) }
      return Model(state: try self.state(of: snapshot, schema), revision: start.revision)
    } catch let error as SchemaError {
      _ = fail("the schema of revision \(start.revision)", error.rendered(file: "it"))
    } catch {
      _ = fail("snapshots/\(start.snapshot?.name ?? "")", "\(error)")
    }
    return nil
  }

  /// Returns true if a state encodes to the same bytes as the objects of a snapshot. The revisions that only contribute
  /// to an `ETag` may differ: a snapshot of an earlier version does not have them.
  private func isSame(_ state: ModelState, as snapshot: StoredSnapshot) -> Bool {
    struct Difference: Error {}
    var encoder = StateEncoder(state)
    do {
      try SnapshotFile(path: snapshot.path).read { block in
        guard try KeptBlock.attachments(of: block) != nil || encoder.nextBlock() == block else { throw Difference() }
      }
      if encoder.nextBlock() == nil { return true }
    } catch is Difference {
    } catch {
      return false
    }
    guard let other = try? self.state(of: snapshot, state.schema) else { return false }
    var encoders = [state, other].map { StateEncoder($0, keepsFarRevisions: false) }
    while let block = encoders[0].nextBlock() {
      guard encoders[1].nextBlock() == block else { return false }
    }
    return encoders[1].nextBlock() == nil
  }

  private func state(of snapshot: StoredSnapshot, _ schema: Schema) throws -> ModelState {
    var decoder = SnapshotDecoder(schema: schema)
    try SnapshotFile(path: snapshot.path).read { try decoder.decode($0) }
    return try decoder.finish()
  }
}
