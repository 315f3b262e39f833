import ArgumentParser
import CommandSupport
import Foundation

/// `keyway-bench crash`: checks that acknowledged writes survive whatever happens to the server.
struct BenchCrashCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "crash",
    abstract: "Ends a server of its own again and again while it is written to, and looks for what was lost.",
    discussion: """
      keyway-bench crash --rounds 300 --seed 1

      Starts 'keyway serve' with a store and a schema of its own, lets connections write and subscribers listen, and
      ends it: by SIGKILL at any moment, while it tidies its files, while it recovers, while it drains, or by SIGTERM.
      Then it starts it again and compares:

      every acknowledged write is there, with its value and revision, unless a later one has replaced it; a write
      without an answer was done wholly or not at all; there are exactly as many revisions as writes; no event had a
      revision that is not there; the epoch is the same; and every subscriber, coming back with its last id, receives
      every revision of what it observes once and in order.

      The first broken promise ends it, with exit status 1, and leaves the directory. A seed repeats the operations and
      the ends, but not what the threads make of them.

      keyway-bench crash --nodes 3 --kind followers --rounds 300
      keyway-bench crash --nodes 3 --kind peers --rounds 300

      Starts so many nodes: one that takes writes and others that follow it or one another, or peers over a
      PostgreSQL that it starts itself, in a temporary folder. Clients write and read a few registers at any node, now
      and then with If-Match, and send writes with an Idempotency-Key again where no answer came, or before it could
      come; streams move from node to node with their last id. Meanwhile nodes are killed, stopped and continued, or
      restarted, ways between them, or to the database, are cut in one direction, the peer that appends is cut off from
      all but its clients until another takes over, the database's answers to appends are lost, and the database is
      killed, or ends for good and its standby takes its place. After each round it compares:

      every acknowledged write is there once, at its revision, and each that had no answer at most once; nothing else
      is there; each answer is right at the revision that it names, and none is older than what any client knew when
      it asked; the requests on each register, refusals and reads among them, have an order that respects when they
      were sent and answered (a search that looks at no revision); each stream was told, byte for byte, what every
      node tells now of the same revisions, which is what the journal has; all nodes have the same journal and
      objects.
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

  @Option(help: "How many nodes there are; without it, one server.")
  var nodes: Int?

  @Option(help: "What they are: \(NodesPlan.Kind.allCases.map(\.rawValue).joined(separator: " or ")).")
  var kind: NodesPlan.Kind?

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([
      ("--rounds", rounds, 1...100_000), ("--writers", writers, 1...50), ("--nodes", nodes ?? 2, 2...9),
    ])
    guard (nodes == nil) == (kind == nil) else { throw ValidationError("--nodes and --kind belong together") }
  }

  func run() async throws {
    let options = self
    // A signal ends the test after the round, so that no server is left running.
    try await Interruption.cancelling { try options.test() }
  }

  /// Runs the test, and blocks its thread until then; nothing else in this process needs a thread.
  private func test() throws {
    let temporary = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-crash-\(UUID().uuidString)")
    let (seed, directory) = (seed ?? UInt64.random(in: 0..<1_000_000_000), directory ?? temporary.path)
    let program = program ?? KeywayServer.keyway
    Self.remark("seed \(seed), in \(directory)")
    if let nodes, let kind {
      let plan = NodesPlan(
        kind: kind, nodes: nodes, rounds: rounds, seed: seed, directory: directory, writers: writers, program: program)
      try show(try NodesTest(plan).run(progress: Self.tell))
    } else {
      let plan = CrashPlan(rounds: rounds, seed: seed, directory: directory, writers: writers, program: program)
      try show(try CrashTest(plan).run(progress: Self.tell))
    }
    // A directory from an option stays, and so does one with a fault to examine.
    if self.directory == nil { try FileManager.default.removeItem(at: temporary) }
  }

  /// Shows the findings. A signal to all processes of a terminal has ended the servers too, which looks like a fault.
  private func show(_ findings: some BenchmarkReport) throws {
    if Task.isCancelled, !findings.isFaultless {
      Self.remark("a signal ended this; where it went to the servers as well, what is broken is its work")
    }
    try report.show(findings)
  }

  private static func tell(round: Int) {
    if round.isMultiple(of: 50) { remark("\(round) rounds") }
  }

  private static func remark(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }
}
