import ArgumentParser

/// What only an import of CSV takes.
struct CSVOptions: ParsableArguments {
  static let names = "--map, --reference, --delimiter, --date-format, --keep-going and --concurrency"
  private static let defaultConcurrency = 8

  @Option(
    help: ArgumentHelp("The key of a column that is named otherwise; column= leaves it out.", valueName: "column=key"))
  var map: [String] = []

  @Option(
    help: ArgumentHelp(
      "The entity of a to-one whose column has ids only; may be repeated.", valueName: "column=Entity"))
  var reference: [String] = []

  @Option(help: ArgumentHelp("What stands between the fields: a character, or tab.", valueName: "character"))
  var delimiter = ","

  @Flag(help: "Go on after a row that is refused; they are listed at the end.")
  var keepGoing = false

  @Option(help: ArgumentHelp("How dates are written in the file, as for strptime(3); UTC.", valueName: "format"))
  var dateFormat: String?

  @Option(help: "How many rows are written at a time.")
  var concurrency = defaultConcurrency

  /// Whether all of them are the defaults.
  var isUnused: Bool {
    map.isEmpty && reference.isEmpty && delimiter == "," && !keepGoing && dateFormat == nil
      && concurrency == Self.defaultConcurrency
  }

  /// The keys of renamed columns; of a column that comes twice, the last holds.
  var renames: [String: String] { Self.pairs(map) }

  /// The entities of columns with ids; of a column that comes twice, the last holds.
  var references: [String: String] { Self.pairs(reference) }

  /// The byte between two fields.
  var delimiterByte: UInt8 { delimiter == "tab" ? UInt8(ascii: "\t") : delimiter.utf8.first ?? UInt8(ascii: ",") }

  private static func pairs(_ assignments: [String]) -> [String: String] {
    let pairs = assignments.map {
      $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    }
    return Dictionary(pairs.map { ($0[0], $0[1]) }, uniquingKeysWith: { _, last in last })
  }

  func validate() throws {
    guard (1...256).contains(concurrency) else { throw ValidationError("--concurrency is between 1 and 256") }
    for entry in map where !entry.contains("=") || entry.hasPrefix("=") {
      throw ValidationError("--map is written column=key, not \(entry)")
    }
    for entry in reference where !entry.contains("=") || entry.hasPrefix("=") || entry.hasSuffix("=") {
      throw ValidationError("--reference is written column=Entity, not \(entry)")
    }
    let isOne = delimiter == "tab" || delimiter.utf8.count == 1
    guard isOne, delimiterByte < 0x80, !CSVParser.reserved.contains(delimiterByte) else {
      throw ValidationError("--delimiter is one character of ASCII, or tab; no quotation mark and no line end")
    }
  }
}
