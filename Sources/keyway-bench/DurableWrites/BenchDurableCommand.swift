import ArgumentParser
import CommandSupport

/// `keyway-bench durable`: durable writes, beside other servers on the same disk.
struct BenchDurableCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "durable",
    abstract: "Starts Keyway, etcd and webdis on Redis, and measures what each writes durably.",
    discussion: """
      keyway-bench durable --directory /var/tmp --rounds 5

      Every server runs as a child of this command, on a free port of 127.0.0.1, with its data in one new directory,
      and ends with it. Each connection sets one key after the other and waits for each response: with etcd through its
      JSON gateway, with webdis on a Redis that has `appendfsync always`. Then it reads from Keyway alone, and again
      while others write. A server that is not installed is skipped.

      Rounds take turns, and the report gives medians and all rounds. All that is measured shares the cores with the
      load generator and with whatever else runs: "others" says how many cores that took. Above a few hundredths, the
      figures are of that rather than of a server, because a process that waits for the disk loses its place on a busy
      core.

      Exits with 1 if a response was wrong. Figures are printed and not judged.
      """)

  @Option(help: "How many rounds.")
  var rounds = 3

  @Option(help: ArgumentHelp("How long each measurement takes.", valueName: "seconds"))
  var seconds = 2.0

  @Option(help: "How many connections write at once, besides one alone.")
  var connections = 64

  @Option(help: "How many connections read.")
  var readers = 64

  @Option(help: "How many connections write while others read.")
  var writers = 16

  @Option(help: "How many keys are written.")
  var keys = 100

  @Option(help: ArgumentHelp("How long a value is.", valueName: "bytes"))
  var size = 100

  @Option(help: ArgumentHelp("Where a directory is made for the data of all servers.", valueName: "directory"))
  var directory = "."

  @Option(help: ArgumentHelp("The schema of Keyway, with a Note that has a text.", valueName: "file"))
  var schema = "example"

  @Option(help: ArgumentHelp("Keyway's store; by default a directory of its own.", valueName: "directory|memory"))
  var store: String?

  @Option(
    parsing: .upToNextOption, help: "Which servers: keyway, etcd, webdis.",
    transform: { name in
      guard let kind = WritePeer.Kind(rawValue: name) else { throw ValidationError("there is no server \(name)") }
      return kind
    })
  var peers: [WritePeer.Kind] = WritePeer.Kind.allCases

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([
      ("--rounds", rounds, 1...100), ("--connections", connections, 1...1000), ("--readers", readers, 1...1000),
      ("--writers", writers, 1...1000), ("--keys", keys, 1...10_000), ("--size", size, 30...8000),
    ])
    guard (0.1...60).contains(seconds) else { throw ValidationError("--seconds is between 0.1 and 60") }
  }

  func run() async throws {
    let options = self
    try await Interruption.cancelling {
      do {
        // Blocks its thread for as long as the benchmark takes; nothing else of this process wants one.
        try options.report.show(try DurableRun.run(options))
      } catch {
        try Task.checkCancellation()
        throw error
      }
    }
  }
}
