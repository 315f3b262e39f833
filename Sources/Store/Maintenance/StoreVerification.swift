package import KeyValueModel

/// Reads a store through and carries every record out again: is all there that was written, and does it come to the
/// same objects? Changes nothing, and can be made while a server runs.
package struct StoreVerification {
  /// What was found.
  package struct Report: Sendable {
    /// Epoch and schema; nil where they cannot be read.
    package var identity: JournalIdentity?
    /// The revision after which the records begin; nil where it cannot be read.
    package var base: Revision?
    /// The last revision of which there is a record.
    package var last: Revision = 0
    /// The last revision that is known to have been acknowledged.
    package var acknowledged: Revision?
    /// The revision up to which the store can be made again, whatever is wrong otherwise; nil where it cannot at all.
    package var goodThrough: Revision?
    /// The objects at `goodThrough`.
    package var objects = 0
    /// How many records were carried out.
    package var records = 0
    /// The files of snapshots, oldest first.
    package var snapshots: [StoredSnapshot] = []
    /// How many snapshots were compared with what the records come to.
    package var comparedSnapshots = 0
    /// The bytes of the database with its log.
    package var databaseBytes = 0
    /// What is not as it was written.
    package var problems: [JournalInspection.Problem] = []
    /// Remarks for the operator, though nothing is wrong.
    package var remarks: [String] = []
  }

  private let inspection: JournalInspection
  private var report = Report()

  /// How often it is made where it finds something else each time, because a server compacts meanwhile.
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

  /// Verifies the store of a directory. `schema` is the one that the records were written under, for a store of which
  /// nothing says it any more. Throws where there is no store.
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

  /// Carries out what there is, beginning anew with a later snapshot where records are not whole.
  private mutating func readAll() {
    noteSnapshots()
    var starts = inspection.starts[...]
    while let start = starts.popFirst() {
      var reader = inspection.reader(from: start)
      let isUnderstood = carryOut(from: start, &reader)
      report.problems += inspection.problems(of: reader)
      guard isUnderstood, let problem = reader.problem else { return }
      if let mark = inspection.acknowledged, reader.revision >= mark {
        // The server would cut it off when it starts.
        report.remarks.append("\(problem); nobody was told of it, and it is cut off when the store is opened")
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

  /// Carries records out as far as they are whole. False where one cannot be carried out, or comes to something else
  /// than a snapshot says.
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
          return fail("revision \(record.revision)", "it cannot be carried out again: \(error.detail)")
        } catch {
          return fail("revision \(record.revision)", "it cannot be understood: \(error)")
        }
        report.records += 1
        for snapshot in inspection.snapshots
        where snapshot.revision == model.revision && snapshot.condition == .whole {
          guard isSame(model.state, as: snapshot) else {
            return fail(
              "snapshots/\(snapshot.name)", "it is another state than the records up to revision \(model.revision) make"
            )
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

  /// Whether a state makes the very bytes that a snapshot has for its objects. The revisions that only an `ETag` is
  /// made of may differ: a snapshot of an earlier version does not have them.
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
