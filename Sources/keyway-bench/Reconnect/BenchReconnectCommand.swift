import ArgumentParser
import CommandSupport
import Glibc
import TestKit

/// `keyway-bench reconnect`: a crowd that comes back at once.
struct BenchReconnectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reconnect",
    abstract: "Cuts off many subscribers, has them all come back at once, and measures them and the writers.",
    discussion: """
      keyway-bench reconnect --subscribers 5000 --behind 100
      keyway-bench reconnect --cut kill --store /tmp/store

      Every subscriber observes the text of one of so many notes. All are cut, so many transactions are written that
      each misses some events, and then all come back at once with the last ID that they had, while others write at a
      steady rate, as they did before the cut. What every subscriber received is checked against what was published.

      With --cut close the connections are closed and the server goes on. With term or kill the benchmark starts a
      server of its own, of the store in --store, ends it with that signal when the missed transactions are written, and
      starts it again.

      Exits with 1 if a subscriber received anything wrong. Latencies are printed and not judged.
      """)

  /// How the subscribers lose their streams.
  enum Cut: String, CaseIterable, ExpressibleByArgument {
    /// They close their connections; the server goes on.
    case close
    /// They do, and when the revisions that they miss are written, the server is ended with a signal and started again.
    case term, kill

    /// The signal; nil where the server goes on.
    var signal: Int32? {
      switch self {
      case .close: nil
      case .term: SIGTERM
      case .kill: SIGKILL
      }
    }
  }

  @Option(help: "How many subscribers.")
  var subscribers = 5000

  @Option(help: "How many objects are observed.")
  var objects = 500

  @Option(help: "How many revisions every subscriber misses.")
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

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  func validate() throws {
    try ReportOptions.check([
      ("--subscribers", subscribers, 1...16_000), ("--objects", objects, 1...10_000), ("--behind", behind, 1...100_000),
      ("--missed", missed, 1...behind), ("--at-once", atOnce, 1...16_000), ("--rate", rate, 1...100_000),
      ("--writers", writers, 1...objects), ("--size", size, 22...90_000), ("--baseline", baseline, 1...3600),
    ])
    guard behind / missed <= objects else {
      throw ValidationError("--behind \(behind) with --missed \(missed) takes \(behind / missed) objects")
    }
    guard cut == .close || store != nil else { throw ValidationError("--cut \(cut.rawValue) takes --store") }
  }

  func run() throws {
    guard let signal = cut.signal else {
      var run = try ReconnectRun(self, try client.socketAddress)
      return try report.show(try run.run(restart: nil))
    }
    let server = try KeywayServer(
      ["--set", "store=\(store ?? "")"] + set.flatMap { ["--set", $0] }, output: .errorsShown)
    func start() throws {
      try server.start()
      try server.awaitReady(seconds: Self.startSeconds)
    }
    try start()
    var run = try ReconnectRun(self, SocketAddress(port: server.port))
    let figures = try run.run {
      try server.end(signal, within: Self.endSeconds)
      try start()
    }
    try server.end(SIGTERM, within: Self.endSeconds)
    try report.show(figures)
  }

  private static let startSeconds = 60.0
  private static let endSeconds = 20.0

  /// In so many groups of objects the missed revisions are written, one group with each.
  var groups: Int { max(1, behind / missed) }

  /// The name of an object.
  func object(_ number: Int) -> String { "Note/reconnect-\(number)" }

  /// The key path that is observed and written.
  func path(_ object: Int) -> String { "/v1/objects/\(self.object(object))/text" }

  /// The object that a subscriber observes.
  func object(of subscriber: Int) -> Int { subscriber % objects }
}
