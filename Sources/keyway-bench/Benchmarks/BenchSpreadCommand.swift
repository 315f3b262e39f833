import ArgumentParser
import CommandSupport
import Foundation
import KeyValueModel
import Support
import TestKit

/// `keyway-bench spread`: many streams that observe different things.
struct BenchSpreadCommand: ParsableCommand {
  /// The kind of thing that a stream observes.
  enum Subject: String, CaseIterable, ExpressibleByArgument {
    /// One key of one object.
    case objects
    /// A live query with a filter of its own: one value of an indexed key, and a range of another key.
    case queries
  }

  static let configuration = CommandConfiguration(
    commandName: "spread",
    abstract:
      "Makes every subscriber observe something different, and measures commits to all of it and to one after another.",
    discussion: """
      keyway-bench spread --subscribers 12000 --objects 12000 --pid $(pidof keyway)
      keyway-bench spread --watch queries --subscribers 2000 --objects 100000

      Subscribers are spread evenly over the objects: each observes a key of one of them, or a live query whose result
      is a range of them. First objects are set in a random order, at a fixed rate, without subscribers; then the same
      with all subscribers. Last, transactions each set one object of each of several subscribers: their time is from
      the request to the last delivery. The received changes are compared with the published ones.

      Exits with 1 if a subscriber received anything wrong. Figures are printed and not judged.
      """)

  @Option(help: "The number of subscribers.")
  var subscribers = 12_000

  @Option(help: "The number of objects.")
  var objects = 12_000

  @Option(help: "The kind of thing that a subscriber observes: objects or queries.")
  var watch = Subject.objects

  @Option(help: ArgumentHelp("The rate of commits of one object each.", valueName: "per second"))
  var rate = 10_000

  @Option(help: "The number of connections that publish.")
  var publishers = 32

  @Option(
    help: ArgumentHelp(
      "The time for which objects are set at that rate, without subscribers and with them.", valueName: "seconds"))
  var seconds = 10

  @Option(help: "The number of subscribers that each transaction concerns.")
  var together = 8000

  @Option(help: "The number of such transactions; 0 for none.")
  var rounds = 9

  @Option(help: ArgumentHelp("The size of a message.", valueName: "bytes"))
  var size = 24

  @Option(help: "The seed of the random order.")
  var seed: UInt64 = 1

  @Option(help: "The server's process id, to measure its memory and CPU time.")
  var pid: Int?

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  func validate() throws {
    try ReportOptions.check([
      ("--subscribers", subscribers, 1...60_000), ("--objects", objects, min(subscribers, 1_000_000)...1_000_000),
      ("--rate", rate, 1...100_000), ("--publishers", publishers, 1...max(1, min(objects, 1000))),
      ("--seconds", seconds, 1...3600),
      ("--together", together, 1...60_000), ("--rounds", rounds, 0...10_000), ("--size", size, 22...80),
    ])
  }

  func run() throws {
    var run = try SpreadRun(self, try client.socketAddress)
    try report.show(try run.run())
  }

  /// The number of values of the indexed key: pairs of letters.
  private static let stateCount = 26 * 26

  /// Returns the name of an object.
  fileprivate func name(_ object: Int) -> String { "Airport/spread-\(object)" }

  /// Returns the value of an object, as JSON: the keys that queries use.
  fileprivate func values(_ object: Int) -> String {
    #"{"name":"","iata":"\#(Self.code(object))","state":"\#(Self.state(object / objectsEach))"}"#
  }

  /// Returns the path of the key of an object that is set.
  fileprivate func path(_ object: Int) -> String { "/v1/objects/\(name(object))/\(key)" }

  /// The key that is set.
  fileprivate var key: String { "city" }

  /// Returns the objects that a subscriber observes; those after the last range belong to no subscriber.
  fileprivate func objects(of subscriber: Int) -> Range<Int> {
    subscriber * objectsEach..<(subscriber + 1) * objectsEach
  }

  private var objectsEach: Int { watch == .objects ? 1 : objects / subscribers }

  /// Returns the target of a subscriber's request.
  fileprivate func target(of subscriber: Int) -> String {
    let objects = objects(of: subscriber)
    switch watch {
    case .objects: return path(objects.lowerBound) + "?options=new"
    case .queries:
      let (first, end) = (Self.code(objects.lowerBound), Self.code(objects.upperBound))
      let filter = "state=='\(Self.state(subscriber))'%26%26iata>='\(first)'%26%26iata<'\(end)'"
      return "/v1/objects/Airport?keys=\(key)&filter=\(filter)"
    }
  }

  private static func state(_ subscriber: Int) -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    let number = subscriber % stateCount
    return "\(letters[number / 26])\(letters[number % 26])"
  }

  /// Returns four letters and digits, which sort in the order of the numbers.
  private static func code(_ number: Int) -> String {
    let digits = String(number, radix: 36, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}

/// One benchmark of many streams that each observe something else.
private struct SpreadRun: ~Copyable {
  /// The number of objects created in one transaction.
  private static let objectsPerTransaction = 1000
  /// The time limit for the subscribers to receive what was published, in seconds.
  private static let catchUpSeconds = 30.0
  /// The time limit for a response, in seconds.
  private static let responseSeconds = 30.0

  private let options: BenchSpreadCommand
  private let address: SocketAddress
  private let ledger: MessageLedger
  private let connection: WireConnection
  private var audience: Audience
  /// The number of messages that each subscriber had received before the counted ones.
  private var received: [Int] = []

  /// Creates a benchmark of the server at an address, with no subscriber connected.
  init(_ options: BenchSpreadCommand, _ address: SocketAddress) throws {
    // This comes first, since an error must not leave a noncopyable value partially initialized.
    let connection = try WireConnection(address, timeoutSeconds: Self.responseSeconds)
    audience = try Audience(
      address,
      (0..<options.subscribers).map { Audience.Seat(target: options.target(of: $0), countsCoalesced: true) })
    ledger = MessageLedger(values: options.objects)
    (self.options, self.address, self.connection) = (options, address, connection)
  }

  /// Runs the benchmark to its end, or until something makes its figures worthless.
  mutating func run() throws -> SpreadReport {
    var report = SpreadReport(subscribers: options.subscribers, objects: options.objects)
    try makeObjects()
    report.alone = try writing()
    try audience.connect()
    // The initial content of a live query arrives before this.
    try audience.pump(seconds: 1)
    audience.expectNumbers(above: SystemClock.now())
    received = audience.subscribers.map(\.received)
    let before = ledger.current.published
    report.observed = try writing()
    try writeTogether(&report)
    try audience.pump(seconds: Audience.settleSeconds)
    compare(&report, since: before)
    return report
  }

  private func makeObjects() throws {
    for first in stride(from: 0, to: options.objects, by: Self.objectsPerTransaction) {
      let operations = (first..<min(first + Self.objectsPerTransaction, options.objects)).map {
        #"{"op":"create","object":"\#(options.name($0))","value":\#(options.values($0))}"#
      }
      try connection.must(.transaction(operations))
    }
  }

  /// Sets one object after the other at the rate, and reads until nothing is missing.
  private mutating func writing() throws -> SpreadReport.Phase {
    let publishers = Publishers(
      Publishers.Plan(
        address: address, paths: (0..<options.objects).map(options.path), seed: options.seed,
        connections: options.publishers, pace: .perSecond(options.rate), sizeBytes: options.size,
        timeoutSeconds: Self.responseSeconds), ledger)
    let tally = DeliveryTally()
    let before = try ProcessFigures.ifAsked(options.pid)
    let published = ledger.current.total
    let start = SystemClock.now()
    publishers.start()
    defer { publishers.stop() }
    let end = Deadline(seconds: Double(options.seconds))
    while !end.hasPassed, try publishers.isRunning() { try pump(tally) }
    publishers.stop()
    while try publishers.isRunning() { try pump(tally) }
    var phase = SpreadReport.Phase(seconds: SystemClock.seconds(since: start))
    try audience.pump(seconds: Audience.settleSeconds) { _, numbers, now in tally.count(numbers, at: now) }
    phase.commits = ledger.current.total - published
    phase.deliveries = tally.delivered
    phase.responses = publishers.outcome.latency
    phase.latency = tally.latency
    if let before, let after = try ProcessFigures.ifAsked(options.pid) {
      phase.cpuSeconds = after.cpuSeconds - before.cpuSeconds
    }
    return phase
  }

  private mutating func pump(_ tally: DeliveryTally) throws {
    try audience.pump(milliseconds: 20) { _, numbers, now in tally.count(numbers, at: now) }
  }

  /// Sets one object of each of `together` subscribers in one transaction, again and again.
  private mutating func writeTogether(_ report: inout SpreadReport) throws {
    let concerned = min(options.together, options.subscribers)
    let objects = (0..<concerned).map { options.objects(of: $0).lowerBound }
    report.together.subscribers = concerned
    let before = try ProcessFigures.ifAsked(options.pid)
    for _ in 0..<options.rounds {
      let tally = DeliveryTally()
      let number = SystemClock.now()
      let message = WireRequest.message(number, sizeBytes: options.size)
      let request = WireRequest.transaction(setting: options.key, of: objects.map(options.name), message)
      let start = SystemClock.now()
      var last = start
      try connection.send(request)
      let deadline = Deadline(seconds: Self.catchUpSeconds)
      while tally.delivered < concerned, !deadline.hasPassed {
        try audience.pump(milliseconds: 20) { _, numbers, now in
          tally.count(numbers, at: now)
          last = now
        }
      }
      let response = try connection.response()
      guard response.isSuccess else { throw LoopbackError(.unexpectedStatus(response.status), response.text) }
      for object in objects { ledger.note(object, number) }
      report.together.milliseconds.append(Double(last - start) / 1e6)
    }
    if let before, let after = try ProcessFigures.ifAsked(options.pid) {
      report.together.cpuSeconds = after.cpuSeconds - before.cpuSeconds
    }
  }

  /// Compares the number of changes that every subscriber received with the number published.
  private func compare(_ report: inout SpreadReport, since before: [Int]) {
    let published = ledger.current.published
    for (index, subscriber) in audience.subscribers.enumerated() {
      let coalesced = subscriber.coalesced ?? CoalescedScanner()
      let wanted = options.objects(of: index).reduce(0) { $0 + published[$1] - before[$1] }
      let count = subscriber.received - received[index] - coalesced.changes + coalesced.covered
      // A live query has many objects, whose messages may overtake each other on the way to the server.
      let isInOrder = options.watch == .queries || subscriber.outOfOrder == 0
      report.coalesced += coalesced.changes
      if count != wanted || subscriber.doubled > 0 || !isInOrder { report.faulty += 1 }
    }
    report.closed = audience.closedCount
  }
}

/// The figures of a benchmark of many streams that each observe something else.
private struct SpreadReport: BenchmarkReport {
  /// Commits of one object each.
  struct Phase {
    var seconds = 0.0
    var commits = 0
    var deliveries = 0
    /// The times from when a commit was due to its response.
    var responses = Latency()
    /// The times from before the request to the delivery.
    var latency = Latency()
    /// The CPU time of the server, in seconds; nil if not measured.
    var cpuSeconds: Double?

    var cpuMicrosecondsPerCommit: Double? { cpuSeconds.map { $0 * 1e6 / Double(max(commits, 1)) } }
    private var commitsPerSecond: Double { Double(commits) / max(seconds, 1e-9) }

    var json: Value {
      var object: JSONObject = [
        "seconds": .rounded(seconds), "commits": .count(commits), "commitsPerSecond": .rounded(commitsPerSecond),
        "deliveries": .count(deliveries), "responseMicroseconds": .object(responses.json),
        "latencyMicroseconds": .object(latency.json),
      ]
      if let cpuMicrosecondsPerCommit { object["serverMicrosecondsPerCommit"] = .rounded(cpuMicrosecondsPerCommit) }
      return .object(object)
    }

    func text(_ name: String) -> String {
      var line = String(
        format: "%@: %.0f commits/s, %d deliveries; responses µs: p50 %d  p99 %d", name, commitsPerSecond, deliveries,
        Int(responses.p50), Int(responses.p99))
      if deliveries > 0 {
        line += "; deliveries µs: p50 \(latency.p50)  p90 \(latency.p90)  p99 \(latency.p99)  max \(latency.max)"
      }
      if let cpuMicrosecondsPerCommit {
        line += String(format: "; server: %.1f µs CPU/commit", cpuMicrosecondsPerCommit)
      }
      return line
    }
  }

  /// Transactions that concern many subscribers.
  struct Together {
    var subscribers = 0
    /// The times from each request to its last delivery, in milliseconds.
    var milliseconds: [Double] = []
    /// The CPU time of the server for all transactions, in seconds; nil if not measured.
    var cpuSeconds: Double?

    var cpuMicrosecondsPerDelivery: Double? {
      cpuSeconds.map { $0 * 1e6 / Double(max(subscribers * milliseconds.count, 1)) }
    }

    var json: Value {
      var object: JSONObject = [
        "subscribers": .count(subscribers), "milliseconds": .array(milliseconds.map { .rounded($0) }),
      ]
      if let cpuMicrosecondsPerDelivery {
        object["serverMicrosecondsPerDelivery"] = .rounded(cpuMicrosecondsPerDelivery)
      }
      return .object(object)
    }

    var text: String {
      let rounds = milliseconds.map { String(format: "%.1f", $0) }.joined(separator: ", ")
      var line = String(
        format: "one transaction, delivered to %d streams: median %.1f ms (%@)", subscribers, milliseconds.median ?? 0,
        rounds)
      if let cpuMicrosecondsPerDelivery {
        line += String(format: "; server: %.1f µs CPU/delivery", cpuMicrosecondsPerDelivery)
      }
      return line
    }
  }

  var subscribers = 0
  var objects = 0
  /// The phase without subscribers.
  var alone = Phase()
  /// The phase with all subscribers.
  var observed = Phase()
  /// The transactions that concern many subscribers.
  var together = Together()
  /// The number of changes received in place of others.
  var coalesced = 0
  /// The number of subscribers that missed a change, or received one twice or out of order.
  var faulty = 0
  var closed = 0

  /// The additional CPU time of the server for a commit that is delivered, in microseconds; nil if not measured.
  private var cpuMicrosecondsPerDelivery: Double? {
    guard let alone = alone.cpuMicrosecondsPerCommit, let all = observed.cpuMicrosecondsPerCommit else { return nil }
    return (all - alone) * Double(observed.commits) / Double(max(observed.deliveries, 1))
  }

  /// True if no subscriber received anything wrong.
  var isFaultless: Bool { faulty == 0 && closed == 0 }

  var json: Value {
    var object: JSONObject = [
      "subscribers": .count(subscribers), "objects": .count(objects), "alone": alone.json, "observed": observed.json,
      "together": together.json, "coalesced": .count(coalesced), "faulty": .count(faulty), "closed": .count(closed),
    ]
    if let cpuMicrosecondsPerDelivery { object["serverMicrosecondsPerDelivery"] = .rounded(cpuMicrosecondsPerDelivery) }
    return .object(object)
  }

  var text: String {
    var lines = [
      "\(subscribers) subscribers, \(objects) objects",
      alone.text("not observed"), observed.text("observed"),
    ]
    if let cpuMicrosecondsPerDelivery {
      lines.append(String(format: "the difference: %.1f µs CPU/delivery", cpuMicrosecondsPerDelivery))
    }
    if !together.milliseconds.isEmpty { lines.append(together.text) }
    lines.append("coalesced \(coalesced)  missing, doubled or out of order \(faulty)  closed \(closed)")
    return lines.joined(separator: "\n")
  }
}
