internal import KeyValueModel
internal import KeywayClient
internal import OrderedCollections

/// Writes the objects of a file of JSON lines, a batch at a time.
///
/// Of the file it holds one batch, and of the batches before it what `ImportPlanner` holds back. A batch is one
/// transaction, or several where what was held back and is set now makes it too large for one.
struct ObjectImporter {
  let client: Client
  let reader: ObjectLineReader
  let limits: ImportLimits
  let conflicts: ConflictRule

  private var planner: ImportPlanner
  private var known: KnownReferences
  /// What has been read and belongs to the next batch.
  private var nextRow: ObjectLine?
  private var batchNumber = 0
  private var tally = ImportTally()

  /// An importer into a server that is empty, or not.
  init(
    client: Client, reader: ObjectLineReader, limits: ImportLimits, conflicts: ConflictRule, isEmpty: Bool
  ) {
    self.client = client
    self.reader = reader
    self.limits = limits
    self.conflicts = conflicts
    planner = ImportPlanner(limits: limits)
    known = KnownReferences(isComplete: isEmpty)
  }

  /// Imports all lines and tells `progress` after each batch how many there are. Throws an `ImportFailure` with the line
  /// that cannot be read, planned or written.
  mutating func run(_ file: inout LineFile, progress: (_ rows: Int, _ bytes: Int) -> Void) async throws -> ImportTally {
    while true {
      batchNumber += 1
      var first: Int?
      do {
        let batch = try nextBatch(&file)
        guard !batch.isEmpty else { break }
        first = batch.first?.line
        try await write(try await operations(for: batch), file.name)
      } catch let error as PlanError {
        throw failure(ImportError(file: file.name, line: error.line, reason: error.reason))
      } catch let error as ImportError {
        throw failure(error)
      } catch let error where error is Problem || error is ClientError {
        throw failure(ImportError(file: file.name, line: first ?? 0, reason: "\(error)"))
      }
      progress(tally.rows, file.bytesRead)
    }
    do {
      try planner.finish()
    } catch {
      throw ImportFailure(
        cause: ImportError(file: file.name, line: error.line, reason: error.reason), rows: tally.rows,
        heldReferences: planner.heldReferences)
    }
    return tally
  }

  private func failure(_ cause: ImportError, _ fate: ImportFailure.Fate = .notApplied) -> ImportFailure {
    ImportFailure(
      cause: cause, rows: tally.rows, batch: (batchNumber, fate), heldReferences: planner.heldReferences)
  }

  private mutating func nextBatch(_ file: inout LineFile) throws(ImportError) -> [ObjectLine] {
    var batch = ObjectBatch(limits: limits)
    if let row = nextRow {
      _ = batch.accept(row)
      nextRow = nil
    }
    while let line = try file.next() {
      do throws(InvalidCell) {
        let row = try reader.object(line)
        guard batch.accept(row) else {
          nextRow = row
          break
        }
      } catch {
        throw ImportError(file: file.name, line: line.number, reason: error.reason)
      }
    }
    return batch.rows
  }

  // MARK: Planning

  private mutating func operations(for batch: [ObjectLine]) async throws -> [PlannedOperation] {
    let present = try await present(for: batch)
    var rows: [ObjectLine] = []
    for var row in batch {
      if conflicts != .fail, present.contains(row.reference) {
        guard conflicts == .replace else {
          tally.skipped += 1
          continue
        }
        let missing = reader.schema.missing(from: row)
        row.replaces = true
        row.values.members.merge(missing.values.members) { given, _ in given }
        row.documents.members.merge(missing.documents.members) { given, _ in given }
      }
      rows.append(row)
    }
    return try planner.plan(rows, present: present)
  }

  /// Which of the objects that a batch names, or would conflict with, are there.
  private mutating func present(for batch: [ObjectLine]) async throws -> Set<Reference> {
    let own = Set(batch.map(\.reference))
    var named = conflicts == .fail ? [] : own
    for row in batch {
      for link in row.links {
        named.formUnion(conflicts == .fail ? link.targets.filter { !own.contains($0) } : link.targets)
      }
    }
    var present = named.filter(known.contains)
    if !known.isComplete {
      let unknown = named.subtracting(present).filter { !planner.isAbsent($0) }
      let found = try await PresenceCheck.present(unknown, on: client)
      for reference in found { known.insert(reference) }
      present.formUnion(found)
    }
    return present
  }

  // MARK: Writing

  private mutating func write(_ operations: [PlannedOperation], _ file: String) async throws {
    var fate = ImportFailure.Fate.notApplied
    for body in TransactionBody.bodies(of: operations, maximumBytes: limits.batchBytes) {
      do {
        _ = try await client.send("POST", "/v1/transactions", body: body.bytes)
      } catch let problem as Problem {
        let place = problem.operation.map { Int($0) } ?? 0
        let line = body.operations.indices.contains(place) ? body.operations[place].line : 0
        throw failure(ImportError(file: file, line: line, reason: Self.text(problem)), fate)
      } catch let error as ClientError {
        let line = body.operations.first?.line ?? 0
        throw failure(ImportError(file: file, line: line, reason: error.description), .unknown)
      }
      fate = .appliedInPart
      for operation in body.operations where operation.isRow {
        tally.rows += 1
        known.insert(operation.object)
      }
    }
  }

  /// The problem without the index of the operation: the line says more.
  private static func text(_ problem: Problem) -> String {
    var problem = problem
    problem.operation = nil
    return problem.description
  }
}
