import Foundation

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
