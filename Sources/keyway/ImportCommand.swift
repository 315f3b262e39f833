import ArgumentParser
import CommandSupport

/// `keyway import`: a CSV file, row by row, into objects of one entity, or JSON lines into objects of any.
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Writes the rows of a CSV file, or JSON lines, as objects.",
    discussion: """
      keyway import stocks.csv --entity Price --id symbol --id date --date-format '%b %d %Y'
      keyway import airports.csv --entity Airport --id iata --map iata= --map state=region
      keyway import objects.jsonl
      keyway export | keyway import - --format jsonl --server http://other:8080

      CSV: the first record names the keys. An empty field leaves its key out, "" in quotation marks is an empty text.
      Rows with the same id are written in the order of the file. In an id, spaces become -.

      JSON lines: each line is an object with its @ref, as an export writes it. References may point up, down and in
      circles; an object that cannot be made without another waits for it. Several lines are one transaction.
      """)

  @Argument(help: ArgumentHelp("A CSV file (RFC 4180, UTF-8) or JSON lines; - is standard input.", valueName: "file"))
  var file: String

  @Option(help: "csv or jsonl (default: jsonl for *.jsonl and *.ndjson, else csv).")
  var format: ImportFormat?

  @Option(help: "The entity of the objects; in JSON lines, of lines without @ref.")
  var entity: String?

  @Option(
    name: .customLong("id"),
    help: ArgumentHelp("A column or key that the id is made of; several are joined with -.", valueName: "column"))
  var idColumns: [String] = []

  @Option(help: "With what is there already: fail, replace or skip (default: replace for csv, fail for jsonl).")
  var onConflict: ConflictRule?

  @OptionGroup(title: "CSV") var csv: CSVOptions

  @OptionGroup(title: "JSON lines") var jsonLines: JSONLinesOptions

  @OptionGroup var options: ClientOptions

  /// How the file is read.
  var actualFormat: ImportFormat { format ?? ImportFormat(file: file) }

  func validate() throws {
    switch actualFormat {
    case .csv:
      guard entity != nil, !idColumns.isEmpty else {
        throw ValidationError("a CSV file wants --entity, and --id with at least one column")
      }
      guard jsonLines.isUnused else { throw ValidationError("\(JSONLinesOptions.names) are for JSON lines") }
    case .jsonl:
      guard (entity == nil) == idColumns.isEmpty else {
        throw ValidationError("--entity and --id go together: they make the references of lines without @ref")
      }
      guard csv.isUnused else { throw ValidationError("\(CSVOptions.names) are for CSV files") }
    }
  }

  func run() async throws {
    switch actualFormat {
    case .csv: try await importCSV()
    case .jsonl: try await importJSONLines()
    }
  }

  /// Runs an import and prints what it did; on a terminal with a bar that is gone at the end, however it ends. Without a
  /// size there is no bar.
  func report(
    size: Int?, _ body: (_ progress: (_ rows: Int, _ bytes: Int) -> Void) async throws -> ImportTally
  ) async throws {
    let start = ContinuousClock.now
    let tally: ImportTally
    if let size, StandardError.isTerminal {
      let clearLine = "\r\u{1B}[K"
      defer { StandardError.write(clearLine) }
      tally = try await body { rows, bytes in
        let share = Double(bytes) / Double(max(size, 1))
        StandardError.write(clearLine + ImportSummary.bar(rows: rows, share: share, seconds: start.elapsedSeconds))
      }
    } else {
      tally = try await body { _, _ in }
    }
    StandardOutput.line(
      ImportSummary.text(rows: tally.rows, skipped: tally.skipped, seconds: start.elapsedSeconds))
  }
}
