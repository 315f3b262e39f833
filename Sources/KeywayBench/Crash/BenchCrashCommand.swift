import ArgumentParser
import Foundation

/// `keyway bench crash`: whether what was acknowledged outlives whatever happens to the server.
struct BenchCrashCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "crash",
    abstract: "Ends a server of its own again and again while it is written to, and looks for what was lost.",
    discussion: """
      keyway bench crash --rounds 300 --seed 1

      Starts 'keyway serve' with a store and a schema of its own, lets connections write and subscribers listen, and
      ends it: by SIGKILL at any moment, while it tidies its files, while it recovers, while it drains, or by SIGTERM.
      Then it starts it again and compares:

      every acknowledged write is there, with its value and revision, unless a later one has replaced it; a write without
      an answer was done wholly or not at all; there are exactly as many revisions as writes; nobody was told of a
      revision that is not there; the epoch is the same; and every subscriber, coming back with its last id, is told of
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

  @Flag(help: "Print the figures as one JSON object.")
  var json = false

  func validate() throws {
    let ranges = [("--rounds", rounds, 1...100_000), ("--writers", writers, 1...50)]
    for (name, value, range) in ranges where !range.contains(value) {
      throw ValidationError("\(name) is between \(range.lowerBound) and \(range.upperBound)")
    }
  }

  func run() async throws {
    let temporary = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-crash-\(UUID().uuidString)")
    let plan = CrashPlan(
      rounds: rounds, seed: seed ?? UInt64.random(in: 0..<1_000_000_000), directory: directory ?? temporary.path,
      writers: writers,
      program: program ?? URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path)
    let report = try Self.test(plan)
    print(json ? report.json : report.text)
    guard report.isFaultless else { throw ExitCode.failure }
    // Only what nobody asked for by name.
    if directory == nil { try FileManager.default.removeItem(at: temporary) }
  }

  /// Blocks its thread for as long as the test takes; nothing else of this process wants one.
  private static func test(_ plan: CrashPlan) throws -> CrashReport {
    let run = try CrashRun(plan)
    FileHandle.standardError.write(Data(("seed \(plan.seed), in \(plan.directory)" + "\n").utf8))
    return run.run { round in
      if round.isMultiple(of: 50) { FileHandle.standardError.write(Data(("\(round) rounds" + "\n").utf8)) }
    }
  }
}
