import KeyValueModel
import KeywayClient
import Support

/// Writes the rows of a file, several at a time.
///
/// It goes in rounds: so many rows are read, dealt out to the workers by their ids, and written; then the next. Rows of
/// one id go to one worker, in the order of the file, and no more than a round is ever in memory.
struct Importer {
  /// How many rows a worker gets in a round: many, so that waiting for the slowest costs little.
  static let rowsPerWorker = 128

  let client: Client
  let entity: String
  let plan: ImportPlan
  let workers: Int
  var conflicts = ConflictRule.replace
  /// Whether rows that are refused are left out, and the others go on.
  var keepsGoing = false

  /// Imports all rows and reports after each round how many there are. Throws an `ImportFailure` with the first line of
  /// the file that cannot be read or that the server refuses; none of the lines below it was begun afterwards. Where
  /// the import is to keep going, that is only so for a file that cannot be taken apart any further, and for a refusal
  /// that is not of the row.
  func run(_ table: inout CSVFile, progress: (_ rows: Int, _ bytes: Int) -> Void) async throws -> ImportTally {
    var tally = ImportTally()
    var ids = KnownIDs()
    var isAtEnd = false
    while !isAtEnd {
      var queues = [[ImportPlan.Row]](repeating: [], count: workers)
      var failures: [ImportError] = []
      var refusals: [ImportError] = []
      do throws(ImportError) {
        isAtEnd = try !fill(&queues, &refusals, &ids, from: &table)
      } catch {
        // What stands before the mistake is written first: an import stops at a line, not somewhere above it.
        failures.append(error)
      }
      for outcome in try await write(queues) {
        tally.rows += outcome.tally.rows
        tally.skipped += outcome.tally.skipped
        refusals += outcome.refusals
        if let failure = outcome.failure { failures.append(failure) }
      }
      tally.refused.add(refusals)
      progress(tally.rows, table.file.bytesRead)
      if let first = failures.min(by: { $0.line < $1.line }) {
        throw ImportFailure(file: table.file.name, cause: first, rows: tally.rows)
      }
    }
    return tally
  }

  /// Reads a round; false at the end of the file.
  private func fill(
    _ queues: inout [[ImportPlan.Row]], _ refusals: inout [ImportError], _ ids: inout KnownIDs,
    from table: inout CSVFile
  ) throws(ImportError) -> Bool {
    for _ in 0..<(workers * Self.rowsPerWorker) {
      guard let record = try table.next() else { return false }
      do throws(ImportError) {
        let row = try InvalidCell.located(line: record.line) { () throws(InvalidCell) in
          let row = try plan.row(record)
          if let id = row.id { try ids.insert(id, of: row.idParts, line: row.line) }
          return row
        }
        queues[Self.shard(row.id ?? String(row.line), of: workers)].append(row)
      } catch {
        guard keepsGoing else { throw error }
        refusals.append(error)
      }
    }
    return true
  }

  /// The worker of an id: FNV-1a, which needs no seed, so that a run can be repeated.
  static func shard(_ id: String, of workers: Int) -> Int {
    let hash = id.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return Int(hash % UInt64(workers))
  }

  private typealias Outcome = (tally: ImportTally, refusals: [ImportError], failure: ImportError?)

  private func write(_ queues: [[ImportPlan.Row]]) async throws -> [Outcome] {
    // The first line that failed so far: what stands below it is not written.
    let end = Locked(Int.max)
    return try await withThrowingTaskGroup(of: Outcome.self) { group in
      for queue in queues where !queue.isEmpty {
        group.addTask { try await write(queue, until: end) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }

  private func write(_ queue: [ImportPlan.Row], until end: Locked<Int>) async throws -> Outcome {
    var tally = ImportTally()
    var refusals: [ImportError] = []
    for row in queue where row.line < end.withLock({ $0 }) {
      switch await write(row) {
      case .written: tally.rows += 1
      case .skipped: tally.skipped += 1
      case .refused(let error) where keepsGoing: refusals.append(error)
      case .refused(let error), .failed(let error):
        end.withLock { $0 = min($0, row.line) }
        return (tally, refusals, error)
      }
    }
    return (tally, refusals, nil)
  }

  /// What became of a row.
  private enum Fate {
    case written, skipped
    /// The server does not take this row; others may be better.
    case refused(ImportError)
    /// No answer, or one that has nothing to do with the row.
    case failed(ImportError)
  }

  private func write(_ row: ImportPlan.Row) async -> Fate {
    let body = Array(Value.object(row.object).json.utf8)
    do {
      if let id = row.id {
        let isMadeOnly = conflicts != .replace || plan.leavesRelationships
        if conflicts == .replace, plan.leavesRelationships, try await isReplaced(id, row) { return .written }
        let headers = isMadeOnly ? ["If-None-Match": "*"] : [:]
        _ = try await client.send("PUT", "/v1/objects/\(entity)/\(id)", body: body, headers: headers)
      } else {
        _ = try await client.send("POST", "/v1/objects/\(entity)", body: body)
      }
      return .written
    } catch let problem as Problem {
      if problem.status == 412, let id = row.id {
        if conflicts == .skip { return .skipped }
        return .refused(ImportError(line: row.line, reason: "\(entity)/\(id) is there already"))
      }
      let hint = problem.code == "invalid-value" ? problem.keyPath.flatMap { plan.hint(forKey: $0, of: row) } : nil
      let error = ImportError(line: row.line, reason: "\(problem)", hint: hint)
      return Self.statusesOfRows.contains(problem.status) ? .refused(error) : .failed(error)
    } catch {
      return .failed(ImportError(line: row.line, reason: "\(error)"))
    }
  }

  /// Replaces an object, of which some relationships are to stay as they are; false where it is not there.
  private func isReplaced(_ id: String, _ row: ImportPlan.Row) async throws -> Bool {
    guard let object = Reference(entity: entity, id: id) else { return false }
    let body = TransactionBody.bodies(of: plan.replacement(of: object, by: row), maximumBytes: .max)
    do {
      for part in body { _ = try await client.send("POST", "/v1/transactions", body: part.bytes) }
      return true
    } catch var problem as Problem {
      if problem.code == "unknown-object" { return false }
      // The line says more than the index of the operation.
      problem.operation = nil
      throw problem
    }
  }

  /// The statuses that refuse a row for what it says; all others would refuse every row.
  private static let statusesOfRows: Set<Int> = [400, 403, 409, 413, 422]
}
