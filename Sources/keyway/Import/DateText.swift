import Support

/// Dates of RFC 3339 as other programs write them.
enum DateText {
  /// The text as a date of RFC 3339; nil where it is none, nor one that only lacks a letter of it.
  ///
  /// A space may stand for `T`, as PostgreSQL and PocketBase write it, and the offset may be `+00`, `+0000` or `UTC`.
  /// Without an offset, it is not known which moment is meant.
  static func rfc3339(_ text: String) -> String? {
    if RFC3339.isDate(text) { return text }
    let pattern = /(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d+))? ?(?:(Z|UTC|GMT)|([+-]\d\d)(?::?(\d\d))?)/
    guard let match = text.wholeMatch(of: pattern), match.3 != nil || match.4 == nil else { return nil }
    let offset = match.6.map { "\($0):\(match.7 ?? "00")" } ?? "Z"
    let date = "\(match.1)T\(match.2)\(match.3 ?? ":00")\(match.4.map { ".\($0)" } ?? "")\(offset)"
    return RFC3339.isDate(date) ? date : nil
  }

  /// Formats in which files often have their dates.
  private static let usual = formats([
    "%b %d %Y", "%b %d, %Y", "%d %b %Y", "%d-%b-%Y", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y",
    "%d/%m/%y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S",
    "%a, %d %b %Y %H:%M:%S %z", "%a, %d %b %Y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y", "%d/%b/%Y:%H:%M:%S %z",
  ])
  /// Those of numbers, by how many digits they have in our time: any number is so many seconds.
  private static let moments = [10: formats(["%s"]), 13: formats(["%Q"])]

  private static func formats(_ formats: [String]) -> [DateFormat] { formats.compactMap { try? DateFormat($0) } }

  /// Each reading of a text as a date, with the format for it: `01/02/2000` may be of January and of February. Nil for
  /// a text that none of the usual formats reads.
  static func suggestion(for text: String) -> String? {
    var dates: [String] = []
    var clauses: [String] = []
    for format in usual + moments[text.count, default: []] {
      guard let date = try? format.date(text), !dates.contains(date) else { continue }
      dates.append(date)
      clauses.append("--date-format '\(format.format)' reads \(text) as \(date)")
    }
    return clauses.isEmpty ? nil : clauses.joined(separator: ", ")
  }
}
