import ArgumentParser
import Foundation

/// `keyway bench crash`: whether what was acknowledged outlives whatever happens to the server.
struct BenchCrashCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "crash",
    abstract: "Ends a server of its own again and again while it is written to, and looks for what was lost.",
    discussion: """
      keyway bench crash --rounds 300 --seed 1

      Starts 'keyway serve' with a store and a schema of its own, lets connections write and subscribers listen, and
      ends it: by SIGKILL at any moment, while it tidies its files, while it recovers, while it drains, or by SIGTERM.
      Then it starts it again and compares:

      every acknowledged write is there, with its value and revision, unless a later one has replaced it; a write
      without an answer was done wholly or not at all; there are exactly as many revisions as writes; no event had a
      revision that is not there; the epoch is the same; and every subscriber, coming back with its last id, receives
      every revision of what it observes once and in order.

      The first broken promise ends it, with exit status 1, and leaves the directory. A seed repeats the operations and
      the ends, but not what the threads make of them.
      """)

  @Option(help: "How often the server is ended.")
  var rounds = 300

  @Option(help: "Where the randomness begins; without one it differs from run to run, and is printed.")
  var seed: UInt64?

  @Option(
    help: ArgumentHelp("Where the store and the server's log are; made where it is missing.", valueName: "folder"))
  var directory: String?

  @Option(help: "How many connections write.")
  var writers = 3

  @Option(help: ArgumentHelp("The program whose 'serve' is tested; without it, this one.", valueName: "file"))
  var program: String?

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([("--rounds", rounds, 1...100_000), ("--writers", writers, 1...50)])
  }

  func run() throws {
    let temporary = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-crash-\(UUID().uuidString)")
    let plan = CrashPlan(
      rounds: rounds, seed: seed ?? UInt64.random(in: 0..<1_000_000_000), directory: directory ?? temporary.path,
      writers: writers, program: program ?? KeywayServer.thisProgram)
    let test = try CrashTest(plan)
    Self.remark("seed \(plan.seed), in \(plan.directory)")
    let findings = test.run { round in
      if round.isMultiple(of: 50) { Self.remark("\(round) rounds") }
    }
    try report.show(findings)
    // A directory that was asked for stays, and so does one with a fault to look at.
    if directory == nil { try FileManager.default.removeItem(at: temporary) }
  }

  private static func remark(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }
}
