import KeyValueModel
import KeywayClient
import OrderedCollections

/// Imports the objects of a file of JSON lines, one batch at a time.
///
/// It holds one batch of the file, and of earlier batches what `ImportPlanner` holds back. A batch is one transaction,
/// or several if held-back items that can be set now make it too large for one.
struct ObjectImporter {
  private let client: Client
  private let reader: ObjectLineReader
  private let limits: ImportLimits
  private let conflicts: ConflictRule

  private var planner: ImportPlanner
  private var known: KnownReferences
  private var ids = KnownIDs()
  /// The line that has been read and belongs to the next batch.
  private var nextRow: ObjectLine?
  private var batchNumber = 0
  private var tally = ImportTally()

  /// Creates an importer. `isEmpty` indicates that the server has no objects.
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

  /// Imports all lines, and reports the number of rows and bytes after each batch. Throws an `ImportFailure` with the
  /// line that cannot be read, planned or written.
  mutating func run(
    _ lines: inout LineFile, progress: (_ rows: Int, _ bytes: Int) -> Void
  ) async throws -> ImportTally {
    while true {
      batchNumber += 1
      var fate: ImportFailure.Fate? = .notApplied
      do throws(ImportError) {
        let batch = try nextBatch(&lines)
        guard let first = batch.first else {
          fate = nil
          try planner.finish()
          return tally
        }
        try await write(try await operations(for: batch, first.line), &fate)
      } catch {
        throw ImportFailure(
          file: lines.file.name, cause: error, rows: tally.rows, batch: fate.map { (batchNumber, $0) },
          heldReferences: planner.heldReferences)
      }
      progress(tally.rows, lines.file.bytesRead)
    }
  }

  private mutating func nextBatch(_ lines: inout LineFile) throws(ImportError) -> [ObjectLine] {
    var batch = ObjectBatch(limits: limits)
    if let row = nextRow {
      _ = batch.accept(row)
      nextRow = nil
    }
    while let line = try lines.next() {
      let row = try InvalidCell.located(line: line.number) { () throws(InvalidCell) in
        let row = try reader.object(line)
        if !row.idParts.isEmpty { try ids.insert(row.reference.id, of: row.idParts, line: row.line) }
        return row
      }
      guard batch.accept(row) else {
        nextRow = row
        break
      }
    }
    return batch.rows
  }

  // MARK: Planning

  private mutating func operations(
    for batch: [ObjectLine], _ line: Int
  ) async throws(ImportError) -> [PlannedOperation] {
    let present: Set<Reference>
    do {
      present = try await self.present(for: batch)
    } catch {
      throw ImportError(line: line, reason: "\(error)")
    }
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

  /// Returns the existing ones among the objects that a batch names or would conflict with.
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

  /// Writes operations. If that fails, `fate` is their outcome.
  private mutating func write(
    _ operations: [PlannedOperation], _ fate: inout ImportFailure.Fate?
  ) async throws(ImportError) {
    for body in TransactionBody.bodies(of: operations, maximumBytes: limits.batchBytes) {
      do {
        _ = try await client.send("POST", "/v1/transactions", body: body.bytes)
      } catch var problem as Problem {
        // A refusal changes nothing; a failure on the way, or of the store, may have come after the commit.
        if problem.status >= 500 { fate = .unknown }
        let place = problem.operation.map { Int($0) } ?? 0
        // The line is more useful than the index of the operation.
        problem.operation = nil
        let line = body.operations.indices.contains(place) ? body.operations[place].line : 0
        throw ImportError(line: line, reason: "\(problem)")
      } catch {
        fate = .unknown
        throw ImportError(line: body.operations.first?.line ?? 0, reason: "\(error)")
      }
      fate = .appliedInPart
      for operation in body.operations where operation.isRow {
        tally.rows += 1
        known.insert(operation.object)
      }
    }
  }
}

/// Lines that are imported together, within limits of number and bytes, no two of them of the same object.
private struct ObjectBatch: Sendable {
  /// The objects in the order of the file.
  private(set) var rows: [ObjectLine] = []

  private let limits: ImportLimits
  private var references: Set<Reference> = []
  private var weight = 0
  private var operations = 0

  init(limits: ImportLimits) {
    self.limits = limits
  }

  /// Adds one more object. Returns false if it has to begin the next batch.
  mutating func accept(_ row: ObjectLine) -> Bool {
    if !rows.isEmpty {
      guard rows.count < limits.batchRows, weight + row.weight <= limits.batchBytes,
        operations + 1 + row.links.count <= ImportLimits.operations, !references.contains(row.reference)
      else { return false }
    }
    references.insert(row.reference)
    weight += row.weight
    operations += 1 + row.links.count
    rows.append(row)
    return true
  }
}

/// The objects that an import knows to exist: those that it created or looked up last. Holds at most twice
/// `ImportLimits.knownReferences`.
private struct KnownReferences: Sendable {
  private var recent: Set<Reference> = []
  private var older: Set<Reference> = []
  /// True if every existing object is known.
  private(set) var isComplete: Bool

  /// Creates an empty set. `isComplete` indicates that no objects exist.
  init(isComplete: Bool) { self.isComplete = isComplete }

  func contains(_ reference: Reference) -> Bool { recent.contains(reference) || older.contains(reference) }

  mutating func insert(_ reference: Reference) {
    recent.insert(reference)
    guard recent.count >= ImportLimits.knownReferences else { return }
    if !older.isEmpty { isComplete = false }
    older = recent
    recent = []
  }
}

/// Looks up objects on a server.
private enum PresenceCheck {
  /// Returns the existing objects among `references`, by a `HEAD` request for each, several at a time.
  static func present(_ references: Set<Reference>, on client: Client) async throws -> Set<Reference> {
    var rest = references.sorted()[...]
    return try await withThrowingTaskGroup(of: (Reference, Bool).self) { group in
      var present: Set<Reference> = []
      func ask(_ reference: Reference) {
        group.addTask { (reference, try await exists(reference, on: client)) }
      }
      for _ in 0..<ImportLimits.connections {
        if let reference = rest.popFirst() { ask(reference) }
      }
      while let (reference, exists) = try await group.next() {
        if exists { present.insert(reference) }
        if let reference = rest.popFirst() { ask(reference) }
      }
      return present
    }
  }

  private static func exists(_ reference: Reference, on client: Client) async throws -> Bool {
    let response = try await client.request("HEAD", "/v1/objects/\(reference)")
    switch response.status {
    case 200: return true
    case 404: return false
    default: throw Problem(response)
    }
  }
}
