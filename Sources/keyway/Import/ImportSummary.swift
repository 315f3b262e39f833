import Foundation

/// Formats the progress and the result of an import.
enum ImportSummary {
  /// Returns `imported 560 rows in 0.4 s (1,400/s)`, with the numbers of skipped and refused rows if there are any.
  static func text(rows: Int, skipped: Int = 0, refused: Int = 0, seconds: Double) -> String {
    let rate = seconds > 0 ? Double(rows) / seconds : 0
    var text = String(
      format: "imported %@ %@ in %.1f s (%@/s)", grouped(rows), rows == 1 ? "row" : "rows", seconds, grouped(Int(rate)))
    if skipped > 0 { text += ", skipped \(grouped(skipped))" }
    if refused > 0 { text += ", refused \(grouped(refused))" }
    return text
  }

  /// Returns one line for a terminal: a bar of `width` cells, the share of the file, rows and rows per second.
  static func bar(rows: Int, share: Double, seconds: Double, width: Int = 30) -> String {
    let filled = Int(min(max(share, 0), 1) * Double(width))
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
    let rate = seconds > 0 ? Int(Double(rows) / seconds) : 0
    return String(format: "%@ %3d %%  %@ rows, %@/s", bar, Int(share * 100), grouped(rows), grouped(rate))
  }

  /// Returns a number with commas between its thousands, whatever the locale.
  static func grouped(_ number: Int) -> String { number.formatted(.number.locale(Locale(identifier: "en_US"))) }
}

/// The result of an import.
struct ImportTally: Hashable, Sendable {
  var rows = 0
  /// The number of rows that were skipped, because their objects existed already.
  var skipped = 0
  /// The rows that were refused.
  var refused = RefusedRows()
}

/// The refused rows of an import that continued without them.
struct RefusedRows: Hashable, Sendable {
  /// The maximum number of rows that are listed.
  static let maximum = 20

  private(set) var count = 0
  /// The errors of the first refused rows, in the order of the file.
  private(set) var first: [ImportError] = []

  /// Adds the errors of rows that are below the earlier ones.
  mutating func add(_ errors: [ImportError]) {
    count += errors.count
    first += errors.sorted { $0.line < $1.line }.prefix(Self.maximum - first.count)
  }

  /// Returns a line for each of the first rows, the number of further ones, and each hint once.
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

/// The error of an import that stopped early.
struct ImportFailure: Error, Sendable, CustomStringConvertible {
  /// The outcome of the batch in progress.
  enum Fate: String, Hashable, Sendable {
    case notApplied = "was not applied"
    /// It went in several transactions, and not all of them are in the store.
    case appliedInPart = "was applied in part"
    /// The outcome is not known: there was no response, or it reported a failure of the server.
    case unknown = "may have been applied"
  }

  var file: String
  /// The first line that failed.
  var cause: ImportError
  var rows: Int
  /// The batch in progress, from 1, or nil if there are no batches.
  var batch: (number: Int, fate: Fate)?
  /// The number of references that were held back for objects further down, and are not set now.
  var heldReferences = 0

  /// The cause, and the number of imported rows.
  var description: String {
    var text = cause.textWithHint(file: file) + "\nstopped"
    if let batch { text += " in batch \(batch.number), which \(batch.fate.rawValue)" }
    text += "; \(rows) \(rows == 1 ? "row" : "rows") had been imported"
    if heldReferences > 0 { text += "; references that were held back and are not set: \(heldReferences)" }
    return text
  }
}

/// An error in an imported file, with its line.
struct ImportError: Error, Hashable, Sendable {
  /// The line, from 1, or 0 for the file as a whole.
  var line = 0
  var reason: String
  /// The options that would avoid the error, or nil if none are known.
  var hint: String?

  /// Returns `stocks.csv:17: price is not a number: n/a`.
  func text(file: String) -> String { line == 0 ? "\(file): \(reason)" : "\(file):\(line): \(reason)" }

  /// Returns the text, with the hint on a line of its own.
  func textWithHint(file: String) -> String { text(file: file) + (hint.map { "\nhint: \($0)" } ?? "") }
}

/// A field or a line that cannot become a value, an id or an object. The caller knows the line.
struct InvalidCell: Error, Hashable, Sendable {
  var reason: String
  /// The options that would avoid the error, or nil if none are known.
  var hint: String?

  /// Runs `body`, and adds the line number to its error.
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
