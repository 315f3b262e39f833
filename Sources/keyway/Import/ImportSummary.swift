import Foundation

/// What an import did.
struct ImportTally: Hashable, Sendable {
  var rows = 0
  /// How many were left out, because their objects were there already.
  var skipped = 0
}

/// What an import prints of its progress and its end.
enum ImportSummary {
  /// `imported 560 rows in 0.4 s (1,400/s)`, with what was skipped where something was.
  static func text(rows: Int, skipped: Int = 0, seconds: Double) -> String {
    let rate = seconds > 0 ? Double(rows) / seconds : 0
    let text = String(
      format: "imported %@ %@ in %.1f s (%@/s)", grouped(rows), rows == 1 ? "row" : "rows", seconds, grouped(Int(rate)))
    return skipped == 0 ? text : text + ", skipped \(grouped(skipped))"
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
