import ArgumentParser
import CommandSupport
import Foundation

/// `keyway-bench crash`: checks that acknowledged writes survive whatever happens to the server.
struct BenchCrashCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "crash",
    abstract: "Ends a server of its own again and again while clients write, and checks that nothing was lost.",
    discussion: """
      keyway-bench crash --rounds 300 --seed 1

      Starts 'keyway serve' with a store and a schema of its own, lets connections write and subscribers listen, and
      ends the server: with SIGKILL at any moment, while it prunes its files, while it recovers or while it drains, or
      with SIGTERM. Then it starts the server again and checks:

      every acknowledged write exists, with its value and revision, unless a later one has replaced it; a write without
      an answer was done completely or not at all; there are exactly as many revisions as writes; no event had a
      revision that does not exist; the epoch is the same; and every subscriber, which reconnects with its last id,
      receives every revision of what it observes once and in order.

      The first broken promise ends the test, with exit status 1, and keeps the directory. A seed repeats the operations
      and the ends of the server, but not how the threads interleave.

      keyway-bench crash --nodes 3 --kind followers --rounds 300
      keyway-bench crash --nodes 3 --kind peers --rounds 300

      Starts several nodes: one that takes writes and others that follow it or one another, or peers over a PostgreSQL
      that it starts itself, in a temporary folder. Clients write and read a few registers at any node, sometimes with
      If-Match, and repeat writes with an Idempotency-Key if no answer arrived, or before one could arrive; streams
      move from node to node with their last id. Meanwhile nodes are killed, suspended and continued, or restarted;
      network paths between them, or to the database, are cut in one direction; the peer that appends is cut off from
      everything but its clients until another takes over; the database's answers to appends are lost; and the database
      is killed, or ends for good and its standby takes its place. After each round it checks:

      every acknowledged write exists once, at its revision, and each write without an answer at most once; nothing else
      exists; each answer is right at the revision that it names, and is not older than what any client knew at the
      request; the requests on each register, including refusals and reads, have an order that respects the times of
      their requests and answers (the search does not use revisions); each stream received, byte for byte, what every
      node sends now for the same revisions, which agrees with the journal; all nodes have the same journal and
      objects.
      """)

  @Option(help: "The number of times that the server is ended.")
  var rounds = 300

  @Option(help: "The seed of the random choices; by default it differs from run to run, and is printed.")
  var seed: UInt64?

  @Option(help: ArgumentHelp("The folder of the store and the server's log; created if missing.", valueName: "folder"))
  var directory: String?

  @Option(help: "The number of connections that write.")
  var writers = 3

  @Option(help: ArgumentHelp("The keyway to test; by default the one beside this program.", valueName: "file"))
  var program: String?

  @Option(help: "The number of nodes; by default one server.")
  var nodes: Int?

  @Option(help: "The kind of nodes: \(NodesPlan.Kind.allCases.map(\.rawValue).joined(separator: " or ")).")
  var kind: NodesPlan.Kind?

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([
      ("--rounds", rounds, 1...100_000), ("--writers", writers, 1...50), ("--nodes", nodes ?? 2, 2...9),
    ])
    guard (nodes == nil) == (kind == nil) else { throw ValidationError("--nodes and --kind must be used together") }
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
      Self.remark("a signal ended this; if the servers received it too, it caused the broken promises")
    }
    try report.show(findings)
  }

  private static func tell(round: Int) {
    if round.isMultiple(of: 50) { remark("\(round) rounds") }
  }

  private static func remark(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }
}
