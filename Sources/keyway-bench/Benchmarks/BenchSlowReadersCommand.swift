import ArgumentParser
import CommandSupport
import Foundation
import KeyValueModel
import Support
import TestKit

/// `keyway-bench slow-readers`: the cost of stopped readers to the others.
struct BenchSlowReadersCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slow-readers",
    abstract: "Stops some of many subscribers from reading for a while, and measures the effect on the others.",
    discussion: """
      keyway-bench slow-readers --subscribers 1000 --slow 100 --pid $(pidof keyway)

      Sets the texts of several notes in turn, at a fixed rate. Every note has the same number of subscribers: each
      commit is delivered to subscribers/values streams. First all subscribers read, then some stop, then they read
      again until they have caught up. The received messages are compared with the published ones, and the values
      shown with GET.

      Exits with 1 if a subscriber received anything wrong. Latencies are printed and not judged.
      """)

  @Option(help: "The number of subscribers.")
  var subscribers = 1000

  @Option(help: "The number of those that stop reading.")
  var slow = 100

  @Option(help: "The number of values that are set and observed.")
  var values = 40

  @Option(help: ArgumentHelp("The rate of commits.", valueName: "per second"))
  var rate = 2000

  @Option(help: "The number of connections that publish.")
  var publishers = 4

  @Option(help: ArgumentHelp("The size of a message.", valueName: "bytes"))
  var size = 1000

  @Option(help: ArgumentHelp("The time for which all subscribers read at first.", valueName: "seconds"))
  var baseline = 15

  @Option(help: ArgumentHelp("The time for which some do not read.", valueName: "seconds"))
  var stop = 30

  @Option(help: "The server's process id, to measure its memory and CPU time.")
  var pid: Int?

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  func validate() throws {
    try ReportOptions.check([
      ("--subscribers", subscribers, 1...60_000), ("--slow", slow, 0...max(0, subscribers)),
      ("--values", values, 1...max(1, subscribers)), ("--rate", rate, 1...100_000),
      ("--publishers", publishers, 1...max(1, values)),
      ("--size", size, 22...90_000), ("--baseline", baseline, 1...3600), ("--stop", stop, 1...3600),
    ])
  }

  func run() throws {
    var run = try SlowReadersRun(self, try client.socketAddress)
    try report.show(try run.run())
  }

  /// Returns the path of the object of a value.
  fileprivate func objectPath(_ value: Int) -> String { "/v1/objects/Note/slow-readers-\(value)" }

  /// Returns the path of a value.
  fileprivate func path(_ value: Int) -> String { objectPath(value) + "/text" }

  /// Returns the value that a subscriber observes.
  fileprivate func value(of subscriber: Int) -> Int { subscriber % values }

  /// Returns true if a subscriber is one that stops: the first `slow` subscribers, which observe different values.
  fileprivate func isSlow(_ subscriber: Int) -> Bool { subscriber < slow }
}

/// One benchmark with slow readers: all read, then some stop, then all read again.
private struct SlowReadersRun: ~Copyable {
  /// The size of the kernel receive buffer of a reader that stops, in bytes.
  private static let slowReceiveBufferBytes: Int32 = 16_384
  /// The time limit for stopped readers to catch up, in seconds.
  private static let catchUpSeconds = 60
  /// The time limit for a response, in seconds.
  private static let responseSeconds = 15.0

  private let options: BenchSlowReadersCommand
  private let ledger: MessageLedger
  private let publishers: Publishers
  private let connection: WireConnection
  private var audience: Audience

  /// Creates a benchmark of the server at an address, with no subscriber connected.
  init(_ options: BenchSlowReadersCommand, _ address: SocketAddress) throws {
    // This comes first, since an error must not leave a noncopyable value partially initialized.
    let connection = try WireConnection(address, timeoutSeconds: Self.responseSeconds)
    audience = try Audience(
      address,
      (0..<options.subscribers).map { subscriber in
        Audience.Seat.observing(
          options.path(options.value(of: subscriber)),
          receiveBufferBytes: options.isSlow(subscriber) ? Self.slowReceiveBufferBytes : nil,
          countsCoalesced: options.isSlow(subscriber))
      })
    ledger = MessageLedger(values: options.values)
    publishers = Publishers(
      Publishers.Plan(
        address: address, paths: (0..<options.values).map(options.path), connections: options.publishers,
        pace: .perSecond(options.rate), sizeBytes: options.size, timeoutSeconds: Self.responseSeconds), ledger)
    (self.options, self.connection) = (options, connection)
  }

  /// Runs the benchmark to its end, or until something makes its figures worthless.
  mutating func run() throws -> SlowReadersReport {
    var report = SlowReadersReport(subscribers: options.subscribers, slow: options.slow)
    for value in 0..<options.values { try connection.must(.setting(options.objectPath(value), #"{"text":""}"#)) }
    try audience.connect()
    audience.expectNumbers(above: SystemClock.now())
    publishers.start()
    defer { publishers.stop() }
    // A warm-up phase, since first-time operations take longer.
    _ = try phase(seconds: 2)
    report.baseline = try phase(seconds: options.baseline)
    for index in 0..<options.slow { try audience.pause(index) }
    report.stop = try phase(seconds: options.stop)
    let status = try connection.must(WireRequest("GET", "/v1/status")).json
    report.pendingBytes = status["pendingBytes"].whole ?? -1
    report.lagging = status["lagging"].whole ?? -1
    for index in 0..<options.slow { try audience.resume(index) }
    report.catchUp = try catchUp()
    try audience.pump(seconds: Audience.settleSeconds)
    try compare(&report)
    return report
  }

  /// Reads for `seconds`, and measures the subscribers that always read.
  private mutating func phase(seconds: Int) throws -> SlowReadersReport.Phase {
    let deadline = Deadline(seconds: Double(seconds))
    return try measured { _, _ in deadline.hasPassed }
  }

  /// Lets the publishers finish, and reads until every subscriber has received the last message.
  private mutating func catchUp() throws -> SlowReadersReport.Phase {
    publishers.stop()
    let deadline = Deadline(seconds: Double(Self.catchUpSeconds))
    return try measured { [options, ledger] audience, arePublishing in
      if deadline.hasPassed { return true }
      if arePublishing { return false }
      let last = ledger.current.last
      return audience.subscribers.indices.allSatisfy { index in
        audience.subscribers[index].last >= last[options.value(of: index)]
      }
    }
  }

  private mutating func measured(
    until isFinished: (_ audience: borrowing Audience, _ arePublishing: Bool) -> Bool
  ) throws -> SlowReadersReport.Phase {
    let tally = DeliveryTally()
    let options = options
    let before = try ProcessFigures.ifAsked(options.pid)
    let published = ledger.current.total
    let start = SystemClock.now()
    repeat {
      try audience.pump(milliseconds: 20) { index, numbers, now in
        if !options.isSlow(index) { tally.count(numbers, at: now) }
      }
    } while try !isFinished(audience, publishers.isRunning())
    var phase = SlowReadersReport.Phase(seconds: SystemClock.seconds(since: start))
    phase.commits = ledger.current.total - published
    phase.deliveries = tally.delivered
    phase.latency = tally.latency
    phase.typicalP99 = tally.typicalP99
    if let before, let after = try ProcessFigures.ifAsked(options.pid) {
      phase.residentBytes = after.residentBytes
      phase.cpuSeconds = after.cpuSeconds - before.cpuSeconds
    }
    return phase
  }

  /// Compares the received messages of every subscriber with the published ones, and its present value with GET.
  private func compare(_ report: inout SlowReadersReport) throws {
    let page = ledger.current
    for value in 0..<options.values {
      let shown = try connection.must(WireRequest("GET", options.path(value))).text
      for index in stride(from: value, to: options.subscribers, by: options.values) {
        let subscriber = audience.subscribers[index]
        let coalesced = subscriber.coalesced ?? CoalescedScanner()
        let isPresent = shown.hasPrefix("\"@@") && shown.contains("\(subscriber.last)@")
        let received = subscriber.delivered - coalesced.changes + coalesced.covered
        let isComplete = received == page.published[value] && subscriber.doubled == 0 && subscriber.outOfOrder == 0
        report.coalesced += coalesced.changes
        report.covered += coalesced.covered
        if options.isSlow(index) {
          if isPresent { report.present += 1 }
          if isComplete { report.complete += 1 }
        } else if !isPresent || !isComplete {
          report.faulty += 1
        }
      }
    }
    report.closed = audience.closedCount
  }
}

/// The figures of a benchmark with slow readers.
private struct SlowReadersReport: BenchmarkReport {
  /// One phase.
  struct Phase {
    var seconds = 0.0
    var commits = 0
    /// The number of deliveries to the subscribers that always read.
    var deliveries = 0
    /// The latency of the subscribers that always read.
    var latency = Latency()
    /// The median of the 99th percentiles of its seconds.
    var typicalP99: Int64 = 0
    /// The server's resident memory at the end, in bytes; nil if not measured.
    var residentBytes: Int?
    /// The CPU time of the server, in seconds; nil if not measured.
    var cpuSeconds: Double?

    private var commitsPerSecond: Double { Double(commits) / max(seconds, 1e-9) }
    private var deliveriesPerSecond: Double { Double(deliveries) / max(seconds, 1e-9) }

    var json: Value {
      var percentiles = latency.json
      percentiles["typicalP99"] = .count(typicalP99)
      var object: JSONObject = [
        "seconds": .number(seconds), "commitsPerSecond": .number(commitsPerSecond),
        "deliveriesPerSecond": .number(deliveriesPerSecond), "latencyMicroseconds": .object(percentiles),
      ]
      if let residentBytes { object["residentBytes"] = .count(residentBytes) }
      if let cpuSeconds { object["cpuSeconds"] = .number(cpuSeconds) }
      return .object(object)
    }

    func text(_ name: String) -> String {
      var line = String(
        format: "%@: %.0f commits/s, %.0f deliveries/s; latency µs: p50 %d  p90 %d  p99 %d (%d)  max %d", name,
        commitsPerSecond, deliveriesPerSecond, Int(latency.p50), Int(latency.p90), Int(latency.p99), Int(typicalP99),
        Int(latency.max))
      if let residentBytes, let cpuSeconds {
        line += String(
          format: "; server: %.1f MiB, %.0f %% CPU", Double(residentBytes) / 1_048_576, cpuSeconds / seconds * 100)
      }
      return line
    }
  }

  var subscribers = 0
  var slow = 0
  /// The phase in which all subscribers read.
  var baseline = Phase()
  /// The phase in which some have stopped.
  var stop = Phase()
  /// The phase in which they read again, and nothing more is published.
  var catchUp = Phase()
  /// The bytes pending in the server's process at the end of the stop.
  var pendingBytes = 0
  /// The number of streams that missed events at the end of the stop.
  var lagging = 0
  /// The number of changes that stopped subscribers received in place of others, and the number of those others.
  var coalesced = 0
  var covered = 0
  /// The number of stopped subscribers that show the same value as GET.
  var present = 0
  /// The number of stopped subscribers that received all changes; a change that stands for others counts as those.
  var complete = 0
  /// The number of other subscribers that missed a message, or received one twice or out of order.
  var faulty = 0
  var closed = 0

  /// The 99th percentile while some had stopped, as a multiple of that before.
  var ratio: Double { Double(stop.latency.p99) / Double(max(baseline.latency.p99, 1)) }

  /// The same ratio of the medians of the seconds, which other programs on the machine affect less.
  var typicalRatio: Double { Double(stop.typicalP99) / Double(max(baseline.typicalP99, 1)) }

  /// True if no subscriber received anything wrong.
  var isFaultless: Bool { present == slow && complete == slow && faulty == 0 && closed == 0 }

  var json: Value {
    .object([
      "subscribers": .count(subscribers), "slow": .count(slow), "baseline": baseline.json, "stop": stop.json,
      "catchUp": catchUp.json, "p99Ratio": .number(ratio), "typicalP99Ratio": .number(typicalRatio),
      "pendingBytes": .count(pendingBytes), "lagging": .count(lagging), "coalesced": .count(coalesced),
      "covered": .count(covered), "present": .count(present), "complete": .count(complete), "faulty": .count(faulty),
      "closed": .count(closed),
    ])
  }

  var text: String {
    [
      baseline.text("all read"), stop.text("\(slow) of \(subscribers) do not"), catchUp.text("they read again"),
      String(
        format: "p99 of the others: %.2f times; in parentheses the median of the seconds: %.2f times", ratio,
        typicalRatio),
      String(
        format: "at the end of the stop: %.1f MiB pending, %d streams lagging", Double(pendingBytes) / 1_048_576,
        lagging),
      "caught up in \(String(format: "%.2f", catchUp.seconds)) s: \(coalesced) changes in place of \(covered)",
      "\(present) of \(slow) show the same as GET; \(complete) of \(slow) received every change",
      "of the others, missing, doubled or out of order: \(faulty); closed: \(closed)",
    ].joined(separator: "\n")
  }
}
