internal import KeyValueModel
internal import KeywayClient
internal import Locking

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

  /// Imports all rows and tells `progress` after each round how many there are. Throws an `ImportFailure` with the first
  /// line of the file that cannot be read or that the server refuses; of the lines below it, none was begun afterwards.
  func run(_ file: inout CSVFile, progress: (_ rows: Int, _ bytes: Int) -> Void) async throws -> ImportTally {
    var imported = ImportTally()
    var isAtEnd = false
    while !isAtEnd {
      var queues = [[ImportPlan.Row]](repeating: [], count: workers)
      var failure: ImportError?
      do throws(ImportError) {
        isAtEnd = try !fill(&queues, from: &file)
      } catch {
        // What stands before the mistake is written first: an import stops at a line, not somewhere above it.
        failure = error
      }
      let outcome = try await write(queues, file: file.name)
      imported.rows += outcome.tally.rows
      imported.skipped += outcome.tally.skipped
      progress(imported.rows, file.bytesRead)
      if let error = [outcome.failure, failure].compactMap(\.self).min(by: { $0.line < $1.line }) {
        throw ImportFailure(cause: error, rows: imported.rows)
      }
    }
    return imported
  }

  /// Reads a round; false at the end of the file.
  private func fill(_ queues: inout [[ImportPlan.Row]], from file: inout CSVFile) throws(ImportError) -> Bool {
    for _ in 0..<(workers * Self.rowsPerWorker) {
      guard let record = try file.next() else { return false }
      do throws(InvalidCell) {
        let row = try plan.row(record)
        queues[Self.shard(row.id, of: workers)].append(row)
      } catch {
        throw ImportError(file: file.name, line: record.line, reason: error.reason)
      }
    }
    return true
  }

  /// The worker of an id: FNV-1a, which needs no seed, so that a run can be repeated.
  static func shard(_ id: String, of workers: Int) -> Int {
    let hash = id.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return Int(hash % UInt64(workers))
  }

  private struct Outcome: Sendable {
    var tally = ImportTally()
    var failure: ImportError?
  }

  private func write(_ queues: [[ImportPlan.Row]], file: String) async throws -> Outcome {
    // The first line that failed so far: nobody writes what stands below it.
    let end = Locked(Int.max)
    return try await withThrowingTaskGroup(of: Outcome.self) { group in
      for queue in queues where !queue.isEmpty {
        group.addTask { try await write(queue, until: end, file: file) }
      }
      var total = Outcome()
      for try await outcome in group {
        total.tally.rows += outcome.tally.rows
        total.tally.skipped += outcome.tally.skipped
        total.failure = [total.failure, outcome.failure].compactMap(\.self).min { $0.line < $1.line }
      }
      return total
    }
  }

  private func write(_ queue: [ImportPlan.Row], until end: Locked<Int>, file: String) async throws -> Outcome {
    var outcome = Outcome()
    for row in queue where row.line < end.withLock({ $0 }) {
      switch try await write(row) {
      case .written: outcome.tally.rows += 1
      case .skipped: outcome.tally.skipped += 1
      case .refused(let reason):
        end.withLock { $0 = min($0, row.line) }
        outcome.failure = ImportError(file: file, line: row.line, reason: reason)
        return outcome
      }
    }
    return outcome
  }

  private enum RowFate {
    case written, skipped
    case refused(String)
  }

  /// Writes one row; tells what is wrong where it cannot be written.
  private func write(_ row: ImportPlan.Row) async throws -> RowFate {
    do {
      let body = Array(Value.object(row.object).json.utf8)
      let headers = conflicts == .replace ? [:] : ["If-None-Match": "*"]
      _ = try await client.send("PUT", "/v1/objects/\(entity)/\(row.id)", body: body, headers: headers)
      return .written
    } catch let error as Problem {
      guard error.status == 412 else { return .refused(error.description) }
      return conflicts == .skip ? .skipped : .refused("\(entity)/\(row.id) is there already")
    } catch let error as ClientError {
      return .refused(error.description)
    }
  }
}
