import ArgumentParser
import KeyValueModel
import KeywayServer
import Store

/// Implements `keyway store verify`: checks that all records are complete, and that they produce the same objects as
/// the snapshots.
struct StoreVerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Reads a whole store and reports its contents and all errors.",
    discussion: """
      Checks every record, replays all of them, and compares the result with every snapshot, byte by byte. Changes
      nothing, and may be used while a server runs. Exits with 1 if there is an error.
      """)

  @OptionGroup var options: StoreOptions

  func run() throws {
    let directory = try options.load().store
    let report = try StoreAdvice.giving(for: directory) { try StoreVerification.run(directory: directory) }
    StandardOutput.write(VerificationText.text(report, directory: directory))
    if !report.problems.isEmpty { throw ExitCode.failure }
  }
}

/// Implements `keyway store repair`: continues with the intact part of a store.
struct StoreRepairCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair",
    abstract: "Makes a store from the intact part of a damaged one, up to a revision.",
    discussion: """
      keyway store verify
      keyway store repair --until 4711

      The old files are renamed and not changed: their new names have damaged-… with the time. If anything is discarded
      that a client may have seen, the store gets a new epoch, so that every client fetches all objects again. Without
      --until, it prints the report of verify.
      """)

  @Option(help: "The revision to continue from; everything after it is discarded.")
  var until: UInt64?

  @Option(
    help: ArgumentHelp(
      "The schema that the records were written under, for a store that no longer has it.", valueName: "file"))
  var schema: String?

  @OptionGroup var options: StoreOptions

  func run() throws {
    let directory = try options.load().store
    let text = try schema.map { try SchemaFile.loadWithText($0).text }
    guard let until else {
      let report = try StoreAdvice.giving(for: directory) {
        try StoreVerification.run(directory: directory, schema: text)
      }
      StandardOutput.write(VerificationText.text(report, directory: directory))
      throw CommandFailure("nothing was changed; use --until to name the last revision to keep")
    }
    let repair: JournalRepair
    do throws(JournalError) {
      repair = try SQLiteJournal.repair(
        directory: directory, until: until, milliseconds: StoreOptions.now, schema: text,
        newEpoch: KeywayServer.makeEpoch)
    } catch {
      throw CommandFailure("\(error)")
    }
    for line in Self.lines(repair) { StandardOutput.line(line) }
  }

  private static func lines(_ repair: JournalRepair) -> [String] {
    var lines = ["the store continues from revision \(repair.bounds.last)"]
    if repair.previousLast > repair.bounds.last {
      let count = Int(clamping: repair.previousLast - repair.bounds.last)
      lines.append(
        "discarded: \(VerificationText.count(count, "revision")), \(repair.bounds.last + 1) to \(repair.previousLast)")
    }
    if let base = repair.previousBase {
      lines.append(
        "discarded: the history of revisions \(base + 1) to \(repair.bounds.base); their result is kept")
    }
    if let previous = repair.previousEpoch {
      lines.append(
        "the epoch is \(repair.identity.epoch) now, and was \(previous): "
          + "clients may have seen what was discarded, and fetch all objects again")
    } else {
      lines.append("the epoch is \(repair.identity.epoch)")
    }
    return lines + repair.movedAside.map { "moved aside: \($0)" }
  }
}

/// Formats the findings of a verification for people.
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
    let base = report.base.map { "after revision \($0)" } ?? "first revision unreadable"
    let acknowledged = report.acknowledged.map { "acknowledged up to \($0)" } ?? "acknowledged revision unknown"
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

  /// Returns the revision to pass to `repair --until`, and what would be lost.
  private static func conclusion(_ report: StoreVerification.Report) -> String {
    guard !report.problems.isEmpty else { return "all is well up to revision \(report.last)" }
    guard let good = report.goodThrough else {
      return "nothing can be recovered; keyway store restore makes a store from a backup"
    }
    let lost = max(report.last, report.acknowledged ?? 0) - good
    return "good up to revision \(good), from which keyway store repair --until \(good) continues"
      + "; \(lost > 0 ? count(Int(clamping: lost), "revision") : "no revision") would be discarded"
  }

  /// `1 record`, `2 records`.
  static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}
