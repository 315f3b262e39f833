internal import ArgumentParser
internal import KeyValueModel
internal import KeywayClient

/// `keyway import`: a CSV file, row by row, into objects of one entity.
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Writes the rows of a CSV file as objects: created, or replaced where the id exists.",
    discussion: """
      keyway import stocks.csv --entity Price --id symbol --id date --date-format '%b %d %Y'
      keyway import airports.csv --entity Airport --id iata --map iata= --map state=region

      The first record names the keys. An empty field leaves its key out, "" in quotation marks is an empty text. Rows
      with the same id are written in the order of the file. In an id, spaces become -.
      """)

  @Argument(help: ArgumentHelp("A CSV file (RFC 4180, UTF-8).", valueName: "file.csv"))
  var file: String

  @Option(help: "The entity of the objects.")
  var entity: String

  @Option(
    name: .customLong("id"), help: ArgumentHelp("A column of the id; several are joined with -.", valueName: "column"))
  var idColumns: [String]

  @Option(
    help: ArgumentHelp("The key of a column that is named otherwise; column= leaves it out.", valueName: "column=key"))
  var map: [String] = []

  @Option(help: ArgumentHelp("How dates are written in the file, as for strptime(3); UTC.", valueName: "format"))
  var dateFormat: String?

  @Option(help: "How many rows are written at a time.")
  var concurrency = 8

  @OptionGroup var options: ClientOptions

  func validate() throws {
    guard !idColumns.isEmpty else { throw ValidationError("--id names at least one column") }
    guard (1...256).contains(concurrency) else { throw ValidationError("--concurrency is between 1 and 256") }
    for entry in map where !entry.contains("=") || entry.hasPrefix("=") {
      throw ValidationError("--map is written column=key, not \(entry)")
    }
  }

  func run() async throws {
    let client = try options.client(connections: concurrency)
    var csv = try CSVFile(file)
    let plan = try await plan(&csv, client: client)
    let importer = Importer(client: client, entity: entity, plan: plan, workers: concurrency)
    let start = ContinuousClock.now
    let rows = try await write(&csv, with: importer, since: start)
    StandardOutput.line(ImportSummary.text(rows: rows, seconds: start.elapsedSeconds))
  }

  /// Runs the import, on a terminal with a bar that is gone at the end, however it ends.
  private func write(
    _ csv: inout CSVFile, with importer: Importer, since start: ContinuousClock.Instant
  ) async throws -> Int {
    guard StandardError.isTerminal else { return try await importer.run(&csv) { _, _ in } }
    let clearLine = "\r\u{1B}[K"
    let size = max(csv.size, 1)
    defer { StandardError.write(clearLine) }
    return try await importer.run(&csv) { rows, bytes in
      let share = Double(bytes) / Double(size)
      StandardError.write(clearLine + ImportSummary.bar(rows: rows, share: share, seconds: start.elapsedSeconds))
    }
  }

  /// What the header and the schema make of the file.
  private func plan(_ csv: inout CSVFile, client: KeywayClient) async throws -> ImportPlan {
    guard let header = try csv.next() else { throw ImportError(file: file, line: 0, reason: "the file is empty") }
    let response = try await client.send("GET", ResourcePath.path("/v1/entities/" + entity))
    guard case .object(let schema)? = try? Value(json: response.body) else {
      throw ImportError(file: file, line: 0, reason: "the server's schema of \(entity) cannot be read")
    }
    do throws(InvalidCell) {
      return try ImportPlan(
        header: header, schema: schema, idColumns: idColumns, renames: Self.renames(map),
        dateFormat: dateFormat.map(DateFormat.init))
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
