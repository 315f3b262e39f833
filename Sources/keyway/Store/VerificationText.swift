import KeyValueModel
import Store

/// What a verification has found, for people.
enum VerificationText {
  static func text(_ report: StoreVerification.Report, directory: String) -> String {
    var lines = ["store        \(directory), format 1"]
    lines.append("epoch        \(report.identity?.epoch ?? "cannot be read")")
    let fingerprint = report.identity.map { Schema.fingerprint(ofYAML: $0.schema) }
    lines.append("schema       \(fingerprint.map { "fingerprint \($0)" } ?? "cannot be read")")
    lines.append("records      \(records(report))")
    for snapshot in report.snapshots {
      lines.append("snapshot     revision \(snapshot.revision), \(snapshot.byteCount) bytes\(condition(snapshot))")
    }
    lines.append("database     \(report.databaseBytes) bytes")
    lines.append("objects      \(objects(report))")
    lines.append(
      "carried out  \(count(report.records, "record")); \(count(report.comparedSnapshots, "later snapshot")) compared")
    lines += report.remarks.map { "remark: \($0)" } + report.problems.map { "problem: \($0)" }
    lines.append(conclusion(report))
    return lines.joined(separator: "\n") + "\n"
  }

  private static func records(_ report: StoreVerification.Report) -> String {
    let base = report.base.map { "after revision \($0)" } ?? "from where cannot be read"
    let acknowledged = report.acknowledged.map { "acknowledged up to \($0)" } ?? "up to where acknowledged is not known"
    return "\(base), up to revision \(report.last); \(acknowledged)"
  }

  private static func condition(_ snapshot: StoredSnapshot) -> String {
    switch snapshot.condition {
    case .whole: ""
    case .damaged: ", damaged"
    case .unused: ", not used"
    }
  }

  private static func objects(_ report: StoreVerification.Report) -> String {
    let bytes = report.databaseBytes + report.snapshots.reduce(0) { $0 + $1.byteCount }
    guard report.objects > 0 else { return "0" }
    return "\(report.objects); \(bytes / report.objects) bytes of the files for each"
  }

  /// The revision that `repair --until` takes, and what is lost then.
  private static func conclusion(_ report: StoreVerification.Report) -> String {
    guard !report.problems.isEmpty else { return "all is well up to revision \(report.last)" }
    guard let good = report.goodThrough else {
      return "nothing can be made of it; keyway store restore makes a store of a backup"
    }
    let lost = max(report.last, report.acknowledged ?? 0) - good
    return "good up to revision \(good), which keyway store repair --until \(good) goes on with"
      + (lost > 0 ? "; \(count(Int(clamping: lost), "revision")) would be given up" : "; no revision would be given up")
  }

  /// `1 record`, `2 records`.
  static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}
