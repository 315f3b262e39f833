import ArgumentParser

/// What only an import of CSV takes.
struct CSVOptions: ParsableArguments {
  static let names = "--delimiter, --keep-going and --concurrency"
  private static let defaultConcurrency = 8

  @Option(
    help: ArgumentHelp(
      "What stands between the fields: a character, or tab (default: what a first line sep= says, else a comma).",
      valueName: "character"))
  var delimiter: String?

  @Flag(help: "Go on after a row that is refused; they are listed at the end.")
  var keepGoing = false

  @Option(help: "How many rows are written at a time.")
  var concurrency = defaultConcurrency

  /// True if all of them are the defaults.
  var isUnused: Bool { delimiter == nil && !keepGoing && concurrency == Self.defaultConcurrency }

  /// The byte between two fields; nil is what the file says.
  var delimiterByte: UInt8? { delimiter == "tab" ? UInt8(ascii: "\t") : delimiter?.utf8.first }

  func validate() throws {
    guard (1...256).contains(concurrency) else { throw ValidationError("--concurrency is between 1 and 256") }
    guard let delimiter else { return }
    let isOne = delimiter == "tab" || delimiter.utf8.count == 1
    guard isOne, let byte = delimiterByte, byte < 0x80, !CSVParser.reserved.contains(byte) else {
      throw ValidationError("--delimiter is one character of ASCII, or tab; no quotation mark and no line end")
    }
  }
}
