import ArgumentParser
import CommandSupport
import Glibc

/// `keyway bench reconnect`: a crowd that comes back at once.
struct BenchReconnectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reconnect",
    abstract: "Cuts off many subscribers, has them all come back at once, and measures them and those who write.",
    discussion: """
      keyway bench reconnect --subscribers 5000 --behind 100
      keyway bench reconnect --cut kill --store /tmp/store

      Every subscriber observes the text of one of so many notes. All are cut, so many transactions are written that
      each miss some events, and then all come back at once with the last ID that they had, while others write at a
      steady rate, as they did before the cut. What everybody was told is checked against what was published.

      With --cut close the connections are closed and the server goes on. With term or kill the benchmark starts a
      server of its own, of the store in --store, ends it with that signal when the missed transactions are written, and
      starts it again.

      Exits with 1 if anybody was told anything wrong. Latencies are printed and not judged.
      """)

  /// How the subscribers lose their streams.
  enum Cut: String, CaseIterable, ExpressibleByArgument {
    case close, term, kill

    /// The same as the benchmark sees it.
    var cut: ReconnectCut {
      switch self {
      case .close: .close
      case .term: .restart(signal: SIGTERM)
      case .kill: .restart(signal: SIGKILL)
      }
    }
  }

  @Option(help: "How many subscribers.")
  var subscribers = 5000

  @Option(help: "How many objects are observed.")
  var objects = 500

  @Option(help: "How many revisions everybody misses.")
  var behind = 100

  @Option(help: "How many of them concern each subscriber.")
  var missed = 2

  @Option(help: "How many connections are under way at once.")
  var atOnce = 4000

  @Option(help: ArgumentHelp("How many writes.", valueName: "per second"))
  var rate = 500

  @Option(help: "How many connections write.")
  var writers = 4

  @Option(help: ArgumentHelp("How long a message is.", valueName: "bytes"))
  var size = 100

  @Option(help: ArgumentHelp("How long the writers are measured before the cut.", valueName: "seconds"))
  var baseline = 5

  @Option(help: "How the subscribers are cut: close, term or kill.")
  var cut = Cut.close

  @Option(help: ArgumentHelp("The store of the server that is started, with term and kill.", valueName: "path"))
  var store: String?

  @Option(help: ArgumentHelp("A further setting of that server.", valueName: "name=value"))
  var set: [String] = []

  @Flag(help: "Print the figures as one JSON object.")
  var json = false

  @OptionGroup var options: ClientOptions

  func validate() throws {
    let ranges = [
      ("--subscribers", subscribers, 1...16_000), ("--objects", objects, 1...10_000), ("--behind", behind, 1...100_000),
      ("--missed", missed, 1...behind), ("--at-once", atOnce, 1...16_000), ("--rate", rate, 1...100_000),
      ("--writers", writers, 1...objects), ("--size", size, 22...90_000), ("--baseline", baseline, 1...3600),
    ]
    for (name, value, range) in ranges where !range.contains(value) {
      throw ValidationError("\(name) is between \(range.lowerBound) and \(range.upperBound)")
    }
    guard behind / missed <= objects else {
      throw ValidationError("--behind \(behind) with --missed \(missed) takes \(behind / missed) objects")
    }
    guard cut == .close || store != nil else { throw ValidationError("--cut \(cut.rawValue) takes --store") }
  }

  func run() async throws {
    let report = try measure()
    print(json ? report.json : report.text)
    guard report.isFaultless else { throw ExitCode.failure }
  }

  /// Blocks its thread for as long as the benchmark takes; nothing else of this process wants one.
  private func measure() throws(FanoutError) -> ReconnectReport {
    switch cut.cut {
    case .close:
      var run = try ReconnectRun(plan(options.address))
      return try run.run(restart: nil)
    case .restart(let signal):
      let server = MeasuredServer(
        store: store ?? "", port: try MeasuredServer.freePort(), set.flatMap { ["--set", $0] })
      try server.start()
      var run = try ReconnectRun(plan(server.url))
      let report = try run.run { () throws(FanoutError) in
        try server.end(signal)
        try server.start()
      }
      try server.end(SIGTERM)
      return report
    }
  }

  private func plan(_ server: String) throws(FanoutError) -> ReconnectPlan {
    ReconnectPlan(
      address: try SocketAddress(server: server), subscribers: subscribers, objects: objects, behind: behind,
      missed: missed, atOnce: atOnce, writesPerSecond: rate, writers: writers, sizeBytes: size,
      baselineSeconds: baseline)
  }
}
