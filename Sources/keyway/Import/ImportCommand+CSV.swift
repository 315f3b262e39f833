import CommandSupport
import KeyValueModel
import KeywayClient

/// Importing CSV.
extension ImportCommand {
  func importCSV() async throws {
    let workers = csv.concurrency ?? CSVOptions.defaultConcurrency
    let client = try options.client(connections: workers)
    var table = try CSVFile(file)
    let entity = entity ?? ""
    let plan = try await plan(&table, entity, client: client)
    let importer = Importer(
      client: client, entity: entity, plan: plan, workers: workers, conflicts: onConflict ?? .replace)
    try await report(size: table.size) { progress in try await importer.run(&table, progress: progress) }
  }

  /// What the header and the schema make of the file.
  private func plan(_ table: inout CSVFile, _ entity: String, client: Client) async throws -> ImportPlan {
    guard let header = try table.next() else { throw ImportError(file: file, line: 0, reason: "the file is empty") }
    let response = try await client.send("GET", ResourcePath.path("/v1/entities/" + entity))
    guard case .object(let schema)? = try? Value(json: response.body) else {
      throw ImportError(file: file, line: 0, reason: "the server's schema of \(entity) cannot be read")
    }
    do throws(InvalidCell) {
      return try ImportPlan(
        header: header, schema: schema, idColumns: idColumns, renames: Self.renames(csv.map),
        dateFormat: csv.dateFormat.map(DateFormat.init))
    } catch {
      throw ImportError(file: file, line: header.line, reason: error.reason)
    }
  }

  /// The entries of --map; of a column that comes twice, the last holds.
  static func renames(_ entries: [String]) -> [String: String] {
    var result: [String: String] = [:]
    for entry in entries {
      let parts = entry.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if parts.count == 2 { result[String(parts[0])] = String(parts[1]) }
    }
    return result
  }
}
