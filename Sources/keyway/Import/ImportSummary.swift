import Foundation

/// What an import prints of its progress and its end.
enum ImportSummary {
  /// `imported 560 rows in 0.4 s (1,400/s)`, with what was skipped and refused where something was.
  static func text(rows: Int, skipped: Int = 0, refused: Int = 0, seconds: Double) -> String {
    let rate = seconds > 0 ? Double(rows) / seconds : 0
    var text = String(
      format: "imported %@ %@ in %.1f s (%@/s)", grouped(rows), rows == 1 ? "row" : "rows", seconds, grouped(Int(rate)))
    if skipped > 0 { text += ", skipped \(grouped(skipped))" }
    if refused > 0 { text += ", refused \(grouped(refused))" }
    return text
  }

  /// One line for a terminal: a bar of `width` cells, the share of the file, rows and rows per second.
  static func bar(rows: Int, share: Double, seconds: Double, width: Int = 30) -> String {
    let filled = Int(min(max(share, 0), 1) * Double(width))
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
    let rate = seconds > 0 ? Int(Double(rows) / seconds) : 0
    return String(format: "%@ %3d %%  %@ rows, %@/s", bar, Int(share * 100), grouped(rows), grouped(rate))
  }

  /// A number with commas between its thousands, whatever the locale.
  static func grouped(_ number: Int) -> String { number.formatted(.number.locale(Locale(identifier: "en_US"))) }
}

/// What an import did.
struct ImportTally: Hashable, Sendable {
  var rows = 0
  /// How many were left out, because their objects were there already.
  var skipped = 0
  /// Those that were left out because they were refused.
  var refused = RefusedRows()
}

/// The rows of a file that an import went on without.
struct RefusedRows: Hashable, Sendable {
  /// How many are told of one by one.
  static let maximum = 20

  private(set) var count = 0
  /// The first of them, in the order of the file.
  private(set) var first: [ImportError] = []

  /// Takes in what was refused of rows that stand below those before.
  mutating func add(_ errors: [ImportError]) {
    count += errors.count
    first += errors.sorted { $0.line < $1.line }.prefix(Self.maximum - first.count)
  }

  /// A line for each of the first, how many more there are, and each hint once.
  func text(file: String) -> String {
    var lines = first.map { $0.text(file: file) }
    if count > first.count { lines.append("and \(ImportSummary.grouped(count - first.count)) more") }
    var hints: [String] = []
    // Hints about one option differ only in their examples.
    func option(_ hint: String) -> Substring { hint.split(separator: " reads ").first ?? "" }
    for case let hint? in first.map(\.hint) where !hints.contains(where: { option($0) == option(hint) }) {
      hints.append(hint)
    }
    return (lines + hints.map { "hint: \($0)" }).joined(separator: "\n")
  }
}

/// The end of an import that stopped on the way.
struct ImportFailure: Error, Sendable, CustomStringConvertible {
  /// What became of the batch that was under way.
  enum Fate: String, Hashable, Sendable {
    case notApplied = "was not applied"
    /// It went in several transactions, and not all of them are in the store.
    case appliedInPart = "was applied in part"
    /// There was no response.
    case unknown = "may have been applied"
  }

  var file: String
  /// The first line that failed.
  var cause: ImportError
  var rows: Int
  /// The batch that was under way, from 1, where there are batches.
  var batch: (number: Int, fate: Fate)?
  /// How many references were held back for objects further down, and are not set now.
  var heldReferences = 0

  /// The cause, and what is in the store now.
  var description: String {
    var text = cause.textWithHint(file: file) + "\nstopped"
    if let batch { text += " in batch \(batch.number), which \(batch.fate.rawValue)" }
    text += "; \(rows) \(rows == 1 ? "row" : "rows") had been imported"
    if heldReferences > 0 { text += "; references that were held back and are not set: \(heldReferences)" }
    return text
  }
}

/// What is wrong in a file that is imported, and where.
struct ImportError: Error, Hashable, Sendable {
  /// The line, from 1; 0 is the file as a whole.
  var line = 0
  var reason: String
  /// What the command line could say to avoid it; nil where nothing is known.
  var hint: String?

  /// `stocks.csv:17: price is no number: n/a`.
  func text(file: String) -> String { line == 0 ? "\(file): \(reason)" : "\(file):\(line): \(reason)" }

  /// The same, and the hint on a line of its own.
  func textWithHint(file: String) -> String { text(file: file) + (hint.map { "\nhint: \($0)" } ?? "") }
}

/// A field or a line that cannot become a value, an id or an object; the caller knows the line.
struct InvalidCell: Error, Hashable, Sendable {
  var reason: String
  /// What the command line could say to avoid it; nil where nothing is known.
  var hint: String?

  /// Runs `body`, and gives what is wrong the number of its line.
  static func located<Result>(
    line: Int, _ body: () throws(InvalidCell) -> Result
  ) throws(ImportError) -> Result {
    do throws(InvalidCell) {
      return try body()
    } catch {
      throw ImportError(line: line, reason: error.reason, hint: error.hint)
    }
  }
}
