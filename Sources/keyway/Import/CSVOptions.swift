import ArgumentParser

/// What only an import of CSV takes.
struct CSVOptions: ParsableArguments {
  static let names = "--map, --date-format and --concurrency"
  private static let defaultConcurrency = 8

  @Option(
    help: ArgumentHelp("The key of a column that is named otherwise; column= leaves it out.", valueName: "column=key"))
  var map: [String] = []

  @Option(help: ArgumentHelp("How dates are written in the file, as for strptime(3); UTC.", valueName: "format"))
  var dateFormat: String?

  @Option(help: "How many rows are written at a time.")
  var concurrency = defaultConcurrency

  /// Whether all of them are the defaults.
  var isUnused: Bool { map.isEmpty && dateFormat == nil && concurrency == Self.defaultConcurrency }

  /// The keys of renamed columns; of a column that comes twice, the last holds.
  var renames: [String: String] {
    let pairs = map.map { $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init) }
    return Dictionary(pairs.map { ($0[0], $0[1]) }, uniquingKeysWith: { _, last in last })
  }

  func validate() throws {
    guard (1...256).contains(concurrency) else { throw ValidationError("--concurrency is between 1 and 256") }
    for entry in map where !entry.contains("=") || entry.hasPrefix("=") {
      throw ValidationError("--map is written column=key, not \(entry)")
    }
  }
}
