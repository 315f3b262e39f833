import ArgumentParser
import CommandSupport

/// `keyway bench slow-readers`: what readers that stop cost the others.
struct BenchSlowReadersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slow-readers",
    abstract: "Has some of many subscribers stop reading for a while, and measures what the others notice.",
    discussion: """
      keyway bench slow-readers --subscribers 1000 --slow 100 --rate 2000 --pid $(pidof keyway)

      Sets the text of so many notes in turn, at a fixed rate, and every note has as many subscribers as the others:
      each commit is delivered to subscribers/values streams. First everybody reads, then some stop, then they read
      again until they have come to the present. What they are told is checked against what was published, and what
      they show against GET.

      Exits with 1 if anybody was told anything wrong. Latencies are printed and not judged.
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

  @Option(help: ArgumentHelp("How long everybody reads at first.", valueName: "seconds"))
  var baseline = 15

  @Option(help: ArgumentHelp("How long some do not read.", valueName: "seconds"))
  var stop = 30

  @Option(help: "The server's process, for its memory and CPU.")
  var pid: Int?

  @Flag(help: "Print the figures as one JSON object.")
  var json = false

  @OptionGroup var options: ClientOptions

  func validate() throws {
    let ranges = [
      ("--subscribers", subscribers, 1...60_000), ("--slow", slow, 0...subscribers),
      ("--values", values, 1...subscribers), ("--rate", rate, 1...100_000), ("--publishers", publishers, 1...values),
      ("--size", size, 22...90_000), ("--baseline", baseline, 1...3600), ("--stop", stop, 1...3600),
    ]
    for (name, value, range) in ranges where !range.contains(value) {
      throw ValidationError("\(name) is between \(range.lowerBound) and \(range.upperBound)")
    }
  }

  func run() async throws {
    let plan = SlowReadersPlan(
      address: try SocketAddress(server: options.address), subscribers: subscribers, slow: slow, values: values,
      commitsPerSecond: rate, publishers: publishers, sizeBytes: size, baselineSeconds: baseline, stopSeconds: stop,
      serverPID: pid)
    let report = try Self.measure(plan)
    print(json ? report.json : report.text)
    guard report.isFaultless else { throw ExitCode.failure }
  }

  /// Blocks its thread for as long as the benchmark takes; nothing else of this process wants one.
  private static func measure(_ plan: SlowReadersPlan) throws(FanoutError) -> SlowReadersReport {
    var run = try SlowReadersRun(plan)
    return try run.run()
  }
}
