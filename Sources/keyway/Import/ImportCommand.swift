import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient
import KeywayServer

/// Implements `keyway import`: imports a CSV file, row by row, into objects of one entity, or JSON lines into objects
/// of any.
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
      makes the ids. A column without a name must be empty, or is named by its number: --map 1=.

      JSON lines: each line is an object with its @ref, as an export writes it; --entity and --id are for lines without.
      References may point up, down and in circles; an object that cannot be created without another waits for it.
      Several lines are one transaction. A nested member is named with dots: --map profile.name=name.

      An ambiguous value is refused, with its line and the option that would read it.
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
      "A column or member of the id, which needs no key of its name; several are joined with -.",
      valueName: "column"))
  var idColumns: [String] = []

  @Option(help: "What to do with existing objects: fail, replace or skip (default: replace for csv, fail for jsonl).")
  var onConflict: ConflictRule?

  @OptionGroup(title: "Columns and values") private var fields: FieldOptions

  @OptionGroup(title: "CSV") private var csv: CSVOptions

  @OptionGroup(title: "JSON lines") private var jsonLines: JSONLinesOptions

  @OptionGroup var options: ClientOptions

  var actualFormat: ImportFormat { format ?? ImportFormat(file: file) }

  func validate() throws {
    if let encoding, !TextDecoder.isKnown(encoding) {
      throw ValidationError(
        "--encoding \(encoding) is unknown; use utf-8, latin1, windows-1252, utf-16le, utf-16be or another of iconv")
    }
    switch actualFormat {
    case .csv:
      guard entity != nil else { throw ValidationError("a CSV file requires --entity") }
      guard onConflict == nil || !idColumns.isEmpty else {
        throw ValidationError("without --id the server makes the ids, so --on-conflict has no effect")
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

  /// Returns the records of a file.
  func table(in input: InputFile) -> CSVFile { CSVFile(input, delimiter: csv.delimiterByte) }

  /// Returns the plan to make objects of an entity with this JSON Schema from the rows below a header. Throws with the
  /// line of the header.
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
    // On an empty server, no object has to be looked up. The status may be for others to read.
    let response = try await client.request("GET", "/v1/status")
    let status = response.status == 200 ? try? Value(json: response.body).asObject : nil
    let isEmpty = status?["objects"] == .integer(0)
    var importer = ObjectImporter(
      client: client, reader: reader, limits: jsonLines.limits, conflicts: onConflict ?? .fail, isEmpty: isEmpty)
    var lines = LineFile(input)
    try await report(size: input.size) { progress in try await importer.run(&lines, progress: progress) }
  }

  /// Returns the reader that makes objects of a schema from the lines of a file.
  func lineReader(_ schema: ImportSchema) -> ObjectLineReader {
    ObjectLineReader(
      schema: schema, entity: entity, idPaths: idColumns, renames: fields.renames, references: fields.references,
      rules: fields.rules)
  }

  /// Runs an import and prints its result. On a terminal, a progress bar is shown and removed at the end, however the
  /// import ends. Without a size there is no bar.
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

/// The format of an imported file.
enum ImportFormat: String, Hashable, Sendable, CaseIterable, ExpressibleByArgument {
  /// A table of one entity's objects (RFC 4180).
  case csv
  /// One JSON object per line.
  case jsonl

  /// Derives the format from the name of a file: JSON lines by the extension, else CSV.
  init(file: String) {
    let name = file.lowercased()
    self = name.hasSuffix(".jsonl") || name.hasSuffix(".ndjson") ? .jsonl : .csv
  }
}

/// The action of an import for an existing object: to stop, to replace everything in the object, or to skip it.
enum ConflictRule: String, Hashable, Sendable, CaseIterable, ExpressibleByArgument {
  case fail, replace, skip
}

/// Options for the columns or members of a file, and for their values.
private struct FieldOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      The key of a column or member with another name; column= leaves it out. A column without a name is named by its \
      number.
      """, valueName: "column=key"))
  var map: [String] = []

  @Option(
    help: ArgumentHelp(
      "The entity of a relationship whose column or member has ids only; may be repeated.", valueName: "column=Entity"))
  var reference: [String] = []

  @Option(
    help: ArgumentHelp("A text that means no value, such as NULL or \\N; may be repeated.", valueName: "text"))
  var null: [String] = []

  @Option(
    name: .customLong("true"),
    help: ArgumentHelp("Another text for true, in letters of either case; may be repeated.", valueName: "text")
  )
  var trueTexts: [String] = []

  @Option(
    name: .customLong("false"),
    help: ArgumentHelp("Another text for false; may be repeated.", valueName: "text"))
  var falseTexts: [String] = []

  @Option(help: ArgumentHelp("The decimal sign of numbers: . or a comma.", valueName: "sign"))
  var decimal = "."

  @Option(help: ArgumentHelp("The sign between groups of three digits.", valueName: "sign"))
  var thousands: String?

  @Option(
    help: ArgumentHelp(
      """
      The format of the dates in the file, as for strptime(3), with %f for a fraction of a second and %Q for \
      milliseconds since 1970; UTC unless %z reads an offset (default: RFC 3339).
      """, valueName: "format"),
    transform: { try DateFormat($0) })
  var dateFormat: DateFormat?

  /// The keys of renamed columns. For a column that appears twice, the last one applies.
  var renames: [String: String] { Self.pairs(map) }

  /// The entities of columns with ids. For a column that appears twice, the last one applies.
  var references: [String: String] { Self.pairs(reference) }

  /// The notation of the values.
  var rules: FieldRules {
    var rules = FieldRules()
    rules.nulls = Set(null)
    rules.trueTexts.formUnion(trueTexts.map { $0.lowercased() })
    rules.falseTexts.formUnion(falseTexts.map { $0.lowercased() })
    rules.numbers = DecimalText.Style(point: decimal.first ?? ".", thousands: thousands?.first)
    rules.dateFormat = dateFormat
    return rules
  }

  private static func pairs(_ assignments: [String]) -> [String: String] {
    let pairs = assignments.map {
      $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    }
    return Dictionary(pairs.map { ($0[0], $0[1]) }, uniquingKeysWith: { _, last in last })
  }

  func validate() throws {
    for entry in map where !entry.contains("=") || entry.hasPrefix("=") {
      throw ValidationError("--map must be column=key, not \(entry)")
    }
    for entry in reference where !entry.contains("=") || entry.hasPrefix("=") || entry.hasSuffix("=") {
      throw ValidationError("--reference must be column=Entity, not \(entry)")
    }
    if let text = rules.trueTexts.intersection(rules.falseTexts).min() {
      throw ValidationError("\(text) cannot mean both true and false")
    }
    guard [".", ","].contains(decimal) else { throw ValidationError("--decimal must be . or a comma") }
    if let thousands {
      guard thousands.count == 1, let sign = thousands.first, !sign.isNumber, !sign.isLetter, !"+-".contains(sign)
      else {
        throw ValidationError("--thousands must be one character, not a letter or digit")
      }
      guard thousands != decimal else {
        throw ValidationError("--thousands is the decimal sign; use --decimal to name another")
      }
    }
  }
}

/// Options for CSV files only.
private struct CSVOptions: ParsableArguments {
  static let names = "--delimiter, --keep-going and --concurrency"
  private static let defaultConcurrency = 8

  @Option(
    help: ArgumentHelp(
      "The delimiter of fields: a character, or tab (default: that of a first line sep=, else a comma).",
      valueName: "character"))
  var delimiter: String?

  @Flag(help: "Continue after refused rows; they are listed at the end.")
  var keepGoing = false

  @Option(help: "The number of rows written at a time.")
  var concurrency = defaultConcurrency

  /// True if all options have their defaults.
  var isUnused: Bool { delimiter == nil && !keepGoing && concurrency == Self.defaultConcurrency }

  /// The delimiter between fields. Nil means the one that the file names.
  var delimiterByte: UInt8? { delimiter == "tab" ? UInt8(ascii: "\t") : delimiter?.utf8.first }

  func validate() throws {
    guard (1...256).contains(concurrency) else { throw ValidationError("--concurrency must be between 1 and 256") }
    guard let delimiter else { return }
    let isOne = delimiter == "tab" || delimiter.utf8.count == 1
    guard isOne, let byte = delimiterByte, byte < 0x80, !CSVParser.reserved.contains(byte) else {
      throw ValidationError("--delimiter must be one ASCII character, or tab, but not a quotation mark or line break")
    }
  }
}

/// Options for JSON lines only: limits of what an import holds and sends.
private struct JSONLinesOptions: ParsableArguments {
  static let names = "--batch, --batch-bytes, --held-references and --held-bytes"

  @Option(help: ArgumentHelp("The number of lines in a transaction.", valueName: "lines"))
  var batch = ImportLimits().batchRows

  @Option(
    help: ArgumentHelp("The maximum size of a transaction; the server has request.bodyBytes.", valueName: "bytes"))
  var batchBytes = ImportLimits().batchBytes

  @Option(help: ArgumentHelp("The maximum number of references that wait for later objects.", valueName: "count"))
  var heldReferences = ImportLimits().heldReferences

  @Option(help: ArgumentHelp("The maximum size of objects that wait for others that they need.", valueName: "bytes"))
  var heldBytes = ImportLimits().heldBytes

  /// True if all options have their defaults.
  var isUnused: Bool { limits == ImportLimits() }

  var limits: ImportLimits {
    ImportLimits(
      batchRows: batch, batchBytes: batchBytes, heldReferences: heldReferences, heldBytes: heldBytes)
  }

  func validate() throws {
    guard (1...ImportLimits.operations).contains(batch) else {
      throw ValidationError("--batch must be between 1 and \(ImportLimits.operations)")
    }
    guard (1...(1 << 30)).contains(batchBytes) else {
      throw ValidationError("--batch-bytes must be between 1 and \(1 << 30)")
    }
    guard heldReferences >= 0, heldBytes >= 0 else {
      throw ValidationError("--held-references and --held-bytes must be at least 0")
    }
  }
}

/// Limits of what an import of JSON lines holds in memory and sends at once.
struct ImportLimits: Hashable, Sendable {
  static let lineBytes = 16 << 20
  /// The maximum number of JSON levels that are read: more than the server accepts in a value, so that the server
  /// refuses it.
  static let jsonDepth = 128
  /// The maximum number of operations of one transaction: the server's default.
  static let operations = RequestLimits().transactionOperations
  /// Half of the maximum number of references that are known to exist. Forgotten ones are looked up again.
  static let knownReferences = 100_000
  /// The number of simultaneous requests.
  static let connections = 8

  /// The maximum number of lines of a batch: `--batch`.
  var batchRows = 1024
  /// The maximum number of bytes of a transaction, which must be less than the server's `request.bodyBytes`:
  /// `--batch-bytes`.
  var batchBytes = 1_000_000
  /// The maximum number of references that wait for objects further down: `--held-references`.
  var heldReferences = 1_000_000
  /// The maximum number of bytes of lines whose objects cannot be created before objects further down: `--held-bytes`.
  var heldBytes = 256 << 20
}
