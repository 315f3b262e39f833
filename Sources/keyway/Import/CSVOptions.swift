internal import ArgumentParser

/// What only an import of CSV takes.
struct CSVOptions: ParsableArguments {
  static let names = "--map, --date-format and --concurrency"
  static let defaultConcurrency = 8

  @Option(
    help: ArgumentHelp("The key of a column that is named otherwise; column= leaves it out.", valueName: "column=key"))
  var map: [String] = []

  @Option(help: ArgumentHelp("How dates are written in the file, as for strptime(3); UTC.", valueName: "format"))
  var dateFormat: String?

  @Option(help: "How many rows are written at a time (default: 8).")
  var concurrency: Int?

  /// Whether nobody gave any of it.
  var isUnused: Bool { map.isEmpty && dateFormat == nil && concurrency == nil }

  func validate() throws {
    if let concurrency, !(1...256).contains(concurrency) {
      throw ValidationError("--concurrency is between 1 and 256")
    }
    for entry in map where !entry.contains("=") || entry.hasPrefix("=") {
      throw ValidationError("--map is written column=key, not \(entry)")
    }
  }
}
