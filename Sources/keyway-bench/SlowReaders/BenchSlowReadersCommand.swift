import ArgumentParser
import CommandSupport
import TestKit

/// `keyway-bench slow-readers`: what readers that stop cost the others.
struct BenchSlowReadersCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slow-readers",
    abstract: "Has some of many subscribers stop reading for a while, and measures what the others notice.",
    discussion: """
      keyway-bench slow-readers --subscribers 1000 --slow 100 --rate 2000 --pid $(pidof keyway)

      Sets the text of so many notes in turn, at a fixed rate, and every note has as many subscribers as the others:
      each commit is delivered to subscribers/values streams. First all subscribers read, then some stop, then they read
      again until they have come to the present. What they receive is checked against what was published, and what
      they show against GET.

      Exits with 1 if a subscriber received anything wrong. Latencies are printed and not judged.
      """)

  @Option(help: "How many subscribers.")
  var subscribers = 1000

  @Option(help: "How many of them stop reading.")
  var slow = 100

  @Option(help: "How many values are set and observed.")
  var values = 40

  @Option(help: ArgumentHelp("How many commits.", valueName: "per second"))
  var rate = 2000

  @Option(help: "How many connections publish.")
  var publishers = 4

  @Option(help: ArgumentHelp("How long a message is.", valueName: "bytes"))
  var size = 1000

  @Option(help: ArgumentHelp("How long all subscribers read at first.", valueName: "seconds"))
  var baseline = 15

  @Option(help: ArgumentHelp("How long some do not read.", valueName: "seconds"))
  var stop = 30

  @Option(help: "The server's process, for its memory and CPU.")
  var pid: Int?

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  func validate() throws {
    try ReportOptions.check([
      ("--subscribers", subscribers, 1...60_000), ("--slow", slow, 0...subscribers),
      ("--values", values, 1...subscribers), ("--rate", rate, 1...100_000), ("--publishers", publishers, 1...values),
      ("--size", size, 22...90_000), ("--baseline", baseline, 1...3600), ("--stop", stop, 1...3600),
    ])
  }

  func run() throws {
    var run = try SlowReadersRun(self, try client.socketAddress)
    try report.show(try run.run())
  }

  /// The path of the object of a value.
  func objectPath(_ value: Int) -> String { "/v1/objects/Note/slow-readers-\(value)" }

  /// The path of a value.
  func path(_ value: Int) -> String { objectPath(value) + "/text" }

  /// The value that a subscriber observes.
  func value(of subscriber: Int) -> Int { subscriber % values }

  /// Whether a subscriber is one of those that stop: so many of the first, which are of different values.
  func isSlow(_ subscriber: Int) -> Bool { subscriber < slow }
}
