internal import Foundation

/// What an export tells of its end.
enum ExportSummary {
  /// `exported 14 objects at revision 1 in 0.1 s`
  static func text(_ tally: Exporter.Tally, seconds: Double) -> String {
    let noun = tally.objects == 1 ? "object" : "objects"
    let count = ImportSummary.grouped(tally.objects)
    return String(format: "exported %@ %@ at revision %@ in %.1f s", count, noun, "\(tally.revision)", seconds)
  }
}
