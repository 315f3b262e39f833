import ArgumentParser
import CommandSupport
import Foundation
import Glibc
import Histogram
import KeyValueModel
import Support
import TestKit

/// `keyway-bench reconnect`: many subscribers that reconnect at the same time.
struct BenchReconnectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reconnect",
    abstract: "Disconnects many subscribers, reconnects all of them at once, and measures them and the writers.",
    discussion: """
      keyway-bench reconnect --subscribers 5000 --behind 100
      keyway-bench reconnect --cut kill --store /tmp/store

      Every subscriber observes the text of one of several notes. All are disconnected, transactions are written so that
      each misses some events, and then all reconnect at once with their last ID, while others write at a steady rate,
      as they did before. The events that every subscriber received are compared with those that were published.

      With --cut close, the connections are closed and the server keeps running. With term or kill, the benchmark starts
      a server of its own with the store in --store, ends it with that signal after the missed transactions were
      written, and starts it again.

      Exits with 1 if a subscriber received anything wrong. Latencies are printed and not judged.
      """)

  /// The ways in which the subscribers lose their streams.
  enum Cut: String, CaseIterable, ExpressibleByArgument {
    /// The subscribers close their connections; the server keeps running.
    case close
    /// The subscribers close their connections, and after the revisions that they miss were written, the server is
    /// ended with a signal and restarted.
    case term, kill

    /// The signal; nil if the server keeps running.
    var signal: Int32? {
      switch self {
      case .close: nil
      case .term: SIGTERM
      case .kill: SIGKILL
      }
    }
  }

  @Option(help: "The number of subscribers.")
  var subscribers = 5000

  @Option(help: "The number of observed objects.")
  var objects = 500

  @Option(help: "The number of revisions that every subscriber misses.")
  var behind = 100

  @Option(help: "The number of those that concern each subscriber.")
  var missed = 2

  @Option(help: "The maximum number of connection attempts at the same time.")
  var atOnce = 4000

  @Option(help: ArgumentHelp("The rate of writes.", valueName: "per second"))
  var rate = 500

  @Option(help: "The number of connections that write.")
  var writers = 4

  @Option(help: ArgumentHelp("The size of a message.", valueName: "bytes"))
  var size = 100

  @Option(help: ArgumentHelp("The time to measure the writers before the disconnection.", valueName: "seconds"))
  var baseline = 5

  @Option(help: "The way to disconnect the subscribers: close, term or kill.")
  var cut = Cut.close

  @Option(help: ArgumentHelp("The store of the server to start, for term and kill.", valueName: "path"))
  var store: String?

  @Option(help: ArgumentHelp("A further setting of that server.", valueName: "name=value"))
  var set: [String] = []

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  func validate() throws {
    try ReportOptions.check([
      ("--subscribers", subscribers, 1...16_000), ("--objects", objects, 1...10_000), ("--behind", behind, 1...100_000),
      ("--missed", missed, 1...max(1, behind)), ("--at-once", atOnce, 1...16_000), ("--rate", rate, 1...100_000),
      ("--writers", writers, 1...max(1, objects)), ("--size", size, 22...90_000), ("--baseline", baseline, 1...3600),
    ])
    guard behind / missed <= objects else {
      throw ValidationError("--behind \(behind) with --missed \(missed) requires at least \(behind / missed) objects")
    }
    guard cut == .close || store != nil else { throw ValidationError("--cut \(cut.rawValue) requires --store") }
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

  /// The number of groups of objects in which the missed revisions are written, one revision for each group.
  fileprivate var groups: Int { max(1, behind / missed) }

  /// Returns the name of an object.
  fileprivate func object(_ number: Int) -> String { "Note/reconnect-\(number)" }

  /// Returns the key path of an object that is observed and written.
  fileprivate func path(_ object: Int) -> String { "/v1/objects/\(self.object(object))/text" }

  /// Returns the object that a subscriber observes.
  fileprivate func object(of subscriber: Int) -> Int { subscriber % objects }
}

/// One benchmark of reconnecting subscribers: all read, are disconnected, miss something, and reconnect at once while
/// others write.
private struct ReconnectRun: ~Copyable {
  /// The number of objects in each transaction that concerns all subscribers.
  private static let objectsPerTransaction = 500
  /// The time for which the writers write before the subscribers reconnect, in microseconds.
  private static let leadMicroseconds: UInt32 = 500_000

  /// The time limit for all subscribers to catch up, in seconds.
  private static let catchUpSeconds = 60.0
  /// The time limit for a response, in seconds.
  private static let responseSeconds = 30.0

  private let options: BenchReconnectCommand
  private let address: SocketAddress
  private let ledger: MessageLedger
  private var audience: Audience

  /// Creates a benchmark of the server at an address, with no subscriber connected.
  init(_ options: BenchReconnectCommand, _ address: SocketAddress) throws {
    audience = try Audience(
      address,
      (0..<options.subscribers).map { subscriber in
        Audience.Seat.observing(options.path(options.object(of: subscriber)), keepsID: true)
      })
    (self.options, self.address) = (options, address)
    ledger = MessageLedger(values: options.objects)
  }

  /// Runs the benchmark to its end, or until something makes its figures worthless. `restart` ends the server and
  /// starts it again; nil if it keeps running.
  mutating func run(restart: (() throws -> Void)?) throws -> ReconnectReport {
    var report = ReconnectReport(options)
    try gather()
    report.before = try writing(seconds: options.baseline)
    audience.cut()
    report.missedEvents = try writeMissed()
    if let restart {
      let start = SystemClock.now()
      try restart()
      report.restartSeconds = SystemClock.seconds(since: start)
    }
    try comeBack(&report)
    try compare(&report)
    return report
  }

  /// Creates the objects, connects all subscribers, and sets every object once, so that each subscriber has an id to
  /// resume from.
  private mutating func gather() throws {
    let connection = try connect()
    for object in 0..<options.objects {
      try connection.must(.setting("/v1/objects/\(options.object(object))", #"{"text":""}"#))
    }
    try audience.connect()
    audience.expectNumbers(above: SystemClock.now())
    for first in stride(from: 0, to: options.objects, by: Self.objectsPerTransaction) {
      try write(Array(first..<min(first + Self.objectsPerTransaction, options.objects)), connection)
    }
    try awaitAll()
  }

  private func connect() throws -> WireConnection {
    try WireConnection(address, timeoutSeconds: Self.responseSeconds)
  }

  /// Writes the revisions that every subscriber misses. Returns the number of missed events, summed over the
  /// subscribers.
  private func writeMissed() throws -> Int {
    let connection = try connect()
    let before = ledger.current.published
    for number in 0..<options.behind {
      try write(Array(stride(from: number % options.groups, to: options.objects, by: options.groups)), connection)
    }
    let after = ledger.current.published
    return (0..<options.subscribers).map(options.object(of:)).reduce(0) { $0 + after[$1] - before[$1] }
  }

  /// Sets objects to a message, all in one transaction.
  private func write(_ objects: [Int], _ connection: WireConnection) throws {
    let number = SystemClock.now()
    try connection.must(
      .transaction(
        setting: "text", of: objects.map(options.object), WireRequest.message(number, sizeBytes: options.size)))
    for object in objects { ledger.note(object, number) }
  }

  private func writers() -> Publishers {
    Publishers(
      Publishers.Plan(
        address: address, paths: (0..<options.objects).map(options.path), connections: options.writers,
        pace: .perSecond(options.rate), sizeBytes: options.size, timeoutSeconds: Self.responseSeconds), ledger)
  }

  /// Writes for `seconds` at the steady rate, and waits until every subscriber has everything.
  private mutating func writing(seconds: Int) throws -> Publishers.Outcome {
    let writers = writers()
    writers.start()
    defer { writers.stop() }
    try audience.pump(seconds: Double(seconds))
    return try finish(writers)
  }

  /// Waits for the last responses to the writers, and until every subscriber has everything.
  private mutating func finish(_ writers: Publishers) throws -> Publishers.Outcome {
    writers.stop()
    // A response that does not arrive in time is a failure of the writer.
    while try writers.isRunning() { try audience.pump(milliseconds: 20) { _, _, _ in } }
    try awaitAll()
    return writers.outcome
  }

  /// Reads until every subscriber has the last message of its object, or the time limit for catching up is reached.
  private mutating func awaitAll() throws {
    let last = ledger.current.last
    let deadline = Deadline(seconds: Self.catchUpSeconds)
    while !deadline.hasPassed,
      audience.subscribers.indices.contains(where: { audience.subscribers[$0].last < last[options.object(of: $0)] })
    { try audience.pump(milliseconds: 20) { _, _, _ in } }
  }

  /// Reconnects all subscribers at once, while others write.
  private mutating func comeBack(_ report: inout ReconnectReport) throws {
    let writers = writers()
    writers.start()
    defer { writers.stop() }
    // The writers are running when the subscribers reconnect.
    usleep(Self.leadMicroseconds)
    writers.measureAnew()
    let arrivals = Arrivals(options, ledger.current.last)
    let start = SystemClock.now()
    let deadline = Deadline(seconds: Self.catchUpSeconds)
    try audience.connect(atOnce: options.atOnce, receive: arrivals.note)
    report.openSeconds = SystemClock.seconds(since: start)
    while arrivals.missing > 0, !deadline.hasPassed { try audience.pump(milliseconds: 20, receive: arrivals.note) }
    report.late = arrivals.missing
    report.caughtUp = arrivals.latency(since: start)
    report.during = try finish(writers)
    try audience.pump(seconds: Audience.settleSeconds)
  }

  /// Compares what every subscriber received with what was published.
  private func compare(_ report: inout ReconnectReport) throws {
    let page = ledger.current
    for index in 0..<options.subscribers {
      let subscriber = audience.subscribers[index]
      let object = options.object(of: index)
      let isExact =
        subscriber.delivered == page.published[object] && subscriber.last == page.last[object]
        && subscriber.doubled == 0 && subscriber.outOfOrder == 0
      if isExact { report.exact += 1 }
    }
    report.closed = audience.closedCount
  }
}

/// The times at which the subscribers have received the last messages that they missed.
private final class Arrivals {
  private let targets: [UInt64]
  private var moments: [UInt64]
  /// The number of subscribers that have not received it yet.
  private(set) var missing: Int

  /// Creates a record without arrivals; `last` are the messages that the objects were last set to.
  init(_ options: BenchReconnectCommand, _ last: [UInt64]) {
    targets = (0..<options.subscribers).map { last[options.object(of: $0)] }
    moments = Array(repeating: 0, count: options.subscribers)
    missing = options.subscribers
  }

  /// Notes messages that a subscriber received.
  func note(_ index: Int, _ numbers: [UInt64], _ now: UInt64) {
    guard moments[index] == 0, let last = numbers.last, last >= targets[index] else { return }
    moments[index] = now
    missing -= 1
  }

  /// Returns the times from `start` of the subscribers that have received it.
  func latency(since start: UInt64) -> Latency {
    var histogram = Latency.histogram()
    for moment in moments where moment > start { histogram.record((moment - start) / 1000) }
    return Latency(histogram)
  }
}

/// The figures of a benchmark of reconnecting subscribers.
private struct ReconnectReport: BenchmarkReport {
  let subscribers: Int
  let objects: Int
  let behind: Int
  /// The number of events that all subscribers missed together.
  var missedEvents = 0
  /// The time that the server took to end and to serve again, in seconds; nil if it was not ended.
  var restartSeconds: Double?
  /// The time until all subscribers were answered, in seconds.
  var openSeconds = 0.0
  /// The times until each subscriber had what it missed, in microseconds.
  var caughtUp = Latency()
  /// The number of subscribers that did not receive it in time.
  var late = 0
  /// The results of the writers before the disconnection.
  var before = Publishers.Outcome()
  /// The results of the writers while all subscribers reconnected.
  var during = Publishers.Outcome()
  /// The number of subscribers that received every message of their object once and in order, before and after the
  /// disconnection.
  var exact = 0
  /// The number of streams that the server ended.
  var closed = 0

  /// Creates a report without figures.
  init(_ options: BenchReconnectCommand) {
    subscribers = options.subscribers
    objects = options.objects
    behind = options.behind
  }

  /// The writers' 99th percentile during the reconnection, as a multiple of that before.
  var ratio: Double { Double(during.latency.p99) / Double(max(before.latency.p99, 1)) }

  /// True if every subscriber received everything once and in order.
  var isFaultless: Bool { exact == subscribers && late == 0 && closed == 0 }

  var json: Value {
    var object: JSONObject = [
      "subscribers": .count(subscribers), "objects": .count(objects), "behind": .count(behind),
      "missedEvents": .count(missedEvents), "openSeconds": .number(openSeconds),
      "caughtUpMicroseconds": .object([
        "p50": .count(caughtUp.p50), "p99": .count(caughtUp.p99), "max": .count(caughtUp.max),
      ]),
      "late": .count(late), "writersBefore": Self.json(before), "writersDuring": Self.json(during),
      "p99Ratio": .number(ratio), "exact": .count(exact), "closed": .count(closed),
    ]
    if let restartSeconds { object["restartSeconds"] = .number(restartSeconds) }
    return .object(object)
  }

  private static func json(_ outcome: Publishers.Outcome) -> Value {
    .object([
      "writes": .count(outcome.writes), "p50Microseconds": .count(outcome.latency.p50),
      "p99Microseconds": .count(outcome.latency.p99), "maxMicroseconds": .count(outcome.latency.max),
    ])
  }

  var text: String {
    var lines: [String] = []
    if let restartSeconds { lines.append(String(format: "the server restarted in %.2f s", restartSeconds)) }
    lines += [
      String(
        format: "%d subscribers of %d objects, %d revisions behind, missed %d events; all answered in %.2f s",
        subscribers, objects, behind, missedEvents, openSeconds),
      String(
        format: "caught up after: p50 %.3f s  p99 %.3f s  max %.3f s; late: %d", Double(caughtUp.p50) / 1e6,
        Double(caughtUp.p99) / 1e6, Double(caughtUp.max) / 1e6, late),
      Self.text("writers before", before), Self.text("writers meanwhile", during),
      String(format: "p99 of the writers: %.2f times", ratio),
      "received every message once and in order: \(exact) of \(subscribers); closed: \(closed)",
    ]
    return lines.joined(separator: "\n")
  }

  private static func text(_ name: String, _ outcome: Publishers.Outcome) -> String {
    "\(name): \(outcome.writes) writes; latency µs: p50 \(outcome.latency.p50)  p99 \(outcome.latency.p99)"
      + "  max \(outcome.latency.max)"
  }
}
