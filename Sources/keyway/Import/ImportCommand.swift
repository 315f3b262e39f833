import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient

/// `keyway import`: a CSV file, row by row, into objects of one entity, or JSON lines into objects of any.
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Writes the rows of a CSV file, or JSON lines, as objects.",
    discussion: """
      keyway import stocks.csv --entity Price --id symbol --id date --date-format '%b %d %Y'
      keyway import positions.csv --entity Position --reference stock=Stock --delimiter ';'
      keyway import airports.csv --entity Airport --id iata --map state=region
      keyway import report.csv --entity Sale --delimiter ';' --decimal , --encoding windows-1252 --null NULL
      keyway import objects.jsonl
      keyway import posts.jsonl --entity Post --id id --map created=at --map expand= --reference author=User
      keyway export | keyway import - --format jsonl --server http://other:8080

      CSV: the first record names the keys. An empty field leaves its key out, "" in quotation marks is an empty text.
      Rows with the same id are written in the order of the file. In an id, spaces become -. Without --id the server
      makes the ids. A column without a name has to be empty, or is called by its number: --map 1=.

      JSON lines: each line is an object with its @ref, as an export writes it; --entity and --id are for lines without.
      References may point up, down and in circles; an object that cannot be made without another waits for it. Several
      lines are one transaction. A member inside of others is named with points: --map profile.name=name.

      A value that cannot be read without doubt is refused, with its line and the option that would read it.
      """)

  @Argument(help: ArgumentHelp("A CSV file (RFC 4180) or JSON lines; - is standard input.", valueName: "file"))
  var file: String

  @Option(help: "csv or jsonl (default: jsonl for *.jsonl and *.ndjson, else csv).")
  var format: ImportFormat?

  @Option(
    help: ArgumentHelp(
      """
      The encoding of the file: latin1, windows-1252, utf-16le or another that iconv knows (default: utf-8, or utf-16 \
      where the file has its byte order mark).
      """, valueName: "name"))
  var encoding: String?

  @Option(help: "The entity of the objects; in JSON lines, of lines without @ref.")
  var entity: String?

  @Option(
    name: .customLong("id"),
    help: ArgumentHelp(
      "A column or member that the id is made of, which needs no key of its name; several are joined with -.",
      valueName: "column"))
  var idColumns: [String] = []

  @Option(help: "With what is there already: fail, replace or skip (default: replace for csv, fail for jsonl).")
  var onConflict: ConflictRule?

  @OptionGroup(title: "Columns and values") var fields: FieldOptions

  @OptionGroup(title: "CSV") var csv: CSVOptions

  @OptionGroup(title: "JSON lines") var jsonLines: JSONLinesOptions

  @OptionGroup var options: ClientOptions

  var actualFormat: ImportFormat { format ?? ImportFormat(file: file) }

  func validate() throws {
    if let encoding, !TextDecoder.isKnown(encoding) {
      throw ValidationError(
        "--encoding \(encoding) is not known; there are utf-8, latin1, windows-1252, utf-16le, utf-16be and others")
    }
    switch actualFormat {
    case .csv:
      guard entity != nil else { throw ValidationError("a CSV file wants --entity") }
      guard onConflict == nil || !idColumns.isEmpty else {
        throw ValidationError("without --id the server makes the ids, so --on-conflict says nothing")
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
    let input = try InputFile(file, encoding: encoding)
    do throws(any Error) {
      switch actualFormat {
      case .csv: try await importCSV(input)
      case .jsonl: try await importJSONLines(input)
      }
    } catch let error as ImportError {
      throw CommandFailure(error.textWithHint(file: input.name))
    }
  }

  private func importCSV(_ input: InputFile) async throws {
    let client = try options.client(connections: csv.concurrency)
    let entity = entity ?? ""
    var table = table(in: input)
    guard let header = try table.next() else { throw ImportError(reason: "the file is empty") }
    let response = try await client.send("GET", ResourcePath.path("/v1/entities/" + entity))
    guard let schema = try? Value(json: response.body).asObject else {
      throw ImportError(reason: "the server's schema of \(entity) cannot be read")
    }
    let importer = Importer(
      client: client, entity: entity, plan: try plan(for: header, schema: schema), workers: csv.concurrency,
      conflicts: onConflict ?? .replace,
      keepsGoing: csv.keepGoing)
    let tally = try await report(size: input.size) { progress in try await importer.run(&table, progress: progress) }
    guard tally.refused.count == 0 else { throw CommandFailure(tally.refused.text(file: input.name)) }
  }

  /// The records of a file.
  func table(in input: InputFile) -> CSVFile { CSVFile(input, delimiter: csv.delimiterByte) }

  /// How the rows below a header become objects of an entity with this JSON Schema. Throws with the header's line.
  func plan(for header: CSVRecord, schema: JSONObject) throws(ImportError) -> ImportPlan {
    try InvalidCell.located(line: header.line) { () throws(InvalidCell) in
      try ImportPlan(
        header: header, schema: schema, idColumns: idColumns, renames: fields.renames,
        references: fields.references, rules: fields.rules)
    }
  }

  private func importJSONLines(_ input: InputFile) async throws {
    let client = try options.client(connections: ImportLimits.connections)
    let reader = lineReader(try await .fetch(client))
    // On an empty server, no object has to be looked for.
    let response = try await client.send("GET", "/v1/status")
    let status = try? Value(json: response.body).asObject
    let isEmpty = status?["objects"] == .integer(0)
    var importer = ObjectImporter(
      client: client, reader: reader, limits: jsonLines.limits, conflicts: onConflict ?? .fail, isEmpty: isEmpty)
    var lines = LineFile(input)
    try await report(size: input.size) { progress in try await importer.run(&lines, progress: progress) }
  }

  /// How the lines of a file become objects of a schema.
  func lineReader(_ schema: ImportSchema) -> ObjectLineReader {
    ObjectLineReader(
      schema: schema, entity: entity, idPaths: idColumns, renames: fields.renames, references: fields.references,
      rules: fields.rules)
  }

  /// Runs an import and prints what it did; on a terminal with a bar that is gone at the end, however it ends. Without
  /// a size there is no bar.
  @discardableResult
  private func report(
    size: Int?, _ body: (_ progress: (_ rows: Int, _ bytes: Int) -> Void) async throws -> ImportTally
  ) async throws -> ImportTally {
    let start = ContinuousClock.now
    let size = StandardError.isTerminal ? size : nil
    let clearLine = "\r\u{1B}[K"
    defer { if size != nil { StandardError.write(clearLine) } }
    let tally = try await body { rows, bytes in
      guard let size else { return }
      let share = Double(bytes) / Double(max(size, 1))
      StandardError.write(clearLine + ImportSummary.bar(rows: rows, share: share, seconds: start.elapsedSeconds))
    }
    StandardOutput.line(
      ImportSummary.text(
        rows: tally.rows, skipped: tally.skipped, refused: tally.refused.count, seconds: start.elapsedSeconds))
    return tally
  }
}

/// How the file of an import is written.
enum ImportFormat: String, Hashable, Sendable, CaseIterable, ExpressibleByArgument {
  /// A table of one entity's objects (RFC 4180).
  case csv
  /// One JSON object a line.
  case jsonl

  /// What the name of a file says: JSON lines by their extension, else CSV.
  init(file: String) {
    let name = file.lowercased()
    self = name.hasSuffix(".jsonl") || name.hasSuffix(".ndjson") ? .jsonl : .csv
  }
}

/// What an import does with an object that is there already: it stops, replaces all that the object holds, or skips it.
enum ConflictRule: String, Hashable, Sendable, CaseIterable, ExpressibleByArgument {
  case fail, replace, skip
}
