import ArgumentParser
import KeywayServer
import Store

/// `keyway store repair`: go on with what is whole.
struct StoreRepairCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair",
    abstract: "Makes a store of what is whole in a damaged one, up to a revision.",
    discussion: """
      keyway store verify
      keyway store repair --until 4711

      The files that were there are renamed, and not changed: damaged-… with the time stands in their names. Where
      something is given up that a client may have seen, the store gets another epoch, so that every client gets all
      objects anew. Without --until it says what verify says.
      """)

  @Option(help: "The revision to go on with; everything after it is given up.")
  var until: UInt64?

  @Option(
    help: ArgumentHelp(
      "The schema that the records were written under, for a store where nothing says it any more.", valueName: "file"))
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
      throw CommandFailure("nothing was changed; --until says up to which revision the store is to be kept")
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
    var lines = ["the store goes on with revision \(repair.bounds.last)"]
    if repair.previousLast > repair.bounds.last {
      let count = Int(clamping: repair.previousLast - repair.bounds.last)
      lines.append(
        "given up: \(VerificationText.count(count, "revision")), \(repair.bounds.last + 1) to \(repair.previousLast)")
    }
    if let base = repair.previousBase {
      lines.append(
        "given up: how revisions \(base + 1) to \(repair.bounds.base) came about; what they came to is there")
    }
    if let previous = repair.previousEpoch {
      lines.append(
        "the epoch is \(repair.identity.epoch) now, and was \(previous): "
          + "clients may have seen what was given up, and get all objects anew")
    } else {
      lines.append("the epoch is \(repair.identity.epoch)")
    }
    return lines + repair.movedAside.map { "moved aside: \($0)" }
  }
}
