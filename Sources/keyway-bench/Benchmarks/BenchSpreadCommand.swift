import ArgumentParser
import CommandSupport
import Foundation
import KeyValueModel
import Support
import TestKit

/// `keyway-bench spread`: many streams, each of something else.
struct BenchSpreadCommand: ParsableCommand {
  /// What a stream observes.
  enum Subject: String, CaseIterable, ExpressibleByArgument {
    /// One key of one object.
    case objects
    /// A live query with a filter of its own: one value of an indexed key, and a range of another key.
    case queries
  }

  static let configuration = CommandConfiguration(
    commandName: "spread",
    abstract:
      "Has every subscriber observe something else, and measures commits to all of it and to one after another.",
    discussion: """
      keyway-bench spread --subscribers 12000 --objects 12000 --pid $(pidof keyway)
      keyway-bench spread --watch queries --subscribers 2000 --objects 100000

      Subscribers are spread evenly over so many objects: each observes a key of one of them, or a live query that a
      range of them meets. First objects are set in a random order, at a fixed rate, while nobody subscribes; then the
      same again while all do. Last come transactions that each set one object of each of so many subscribers: their
      time is from the request to the last delivery. What is received is checked against what was published.

      Exits with 1 if a subscriber received anything wrong. Figures are printed and not judged.
      """)

  @Option(help: "How many subscribers.")
  var subscribers = 12_000

  @Option(help: "How many objects there are.")
  var objects = 12_000

  @Option(help: "What a subscriber observes: objects or queries.")
  var watch = Subject.objects

  @Option(help: ArgumentHelp("How many commits of one object each.", valueName: "per second"))
  var rate = 10_000

  @Option(help: "How many connections publish.")
  var publishers = 32

  @Option(
    help: ArgumentHelp(
      "How long objects are set at that rate, without subscribers and with them.", valueName: "seconds"))
  var seconds = 10

  @Option(help: "How many subscribers a transaction of all concerns.")
  var together = 8000

  @Option(help: "How many such transactions; 0 for none.")
  var rounds = 9

  @Option(help: ArgumentHelp("How long a message is.", valueName: "bytes"))
  var size = 24

  @Option(help: "What the random order comes from.")
  var seed: UInt64 = 1

  @Option(help: "The server's process, for its memory and CPU.")
  var pid: Int?

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  func validate() throws {
    try ReportOptions.check([
      ("--subscribers", subscribers, 1...60_000), ("--objects", objects, subscribers...1_000_000),
      ("--rate", rate, 1...100_000), ("--publishers", publishers, 1...min(objects, 1000)),
      ("--seconds", seconds, 1...3600),
      ("--together", together, 1...60_000), ("--rounds", rounds, 0...10_000), ("--size", size, 22...80),
    ])
  }

  func run() throws {
    var run = try SpreadRun(self, try client.socketAddress)
    try report.show(try run.run())
  }

  /// How many values the indexed key has: pairs of letters.
  private static let stateCount = 26 * 26

  /// The name of an object.
  fileprivate func name(_ object: Int) -> String { "Airport/spread-\(object)" }

  /// What an object is made of: the keys that queries look at.
  fileprivate func values(_ object: Int) -> String {
    #"{"name":"","iata":"\#(Self.code(object))","state":"\#(Self.state(object / objectsEach))"}"#
  }

  /// The path of the key of an object that is set.
  fileprivate func path(_ object: Int) -> String { "/v1/objects/\(name(object))/\(key)" }

  /// The key that is set.
  fileprivate var key: String { "city" }

  /// The objects that a subscriber hears of; those beyond the last range belong to no subscriber.
  fileprivate func objects(of subscriber: Int) -> Range<Int> {
    subscriber * objectsEach..<(subscriber + 1) * objectsEach
  }

  private var objectsEach: Int { watch == .objects ? 1 : objects / subscribers }

  /// What a subscriber asks for.
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

  /// Four letters and digits, in the order of the numbers.
  private static func code(_ number: Int) -> String {
    let digits = String(number, radix: 36, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}

/// One benchmark of many streams that each observe something else.
private struct SpreadRun: ~Copyable {
  /// How many objects are made in one transaction.
  private static let objectsPerTransaction = 1000
  /// How long the subscribers may take to receive what was published.
  private static let catchUpSeconds = 30.0
  /// How long a response may take.
  private static let responseSeconds = 30.0

  private let options: BenchSpreadCommand
  private let address: SocketAddress
  private let ledger: MessageLedger
  private let connection: WireConnection
  private var audience: Audience
  /// How many messages each subscriber had received before those that are counted.
  private var received: [Int] = []

  /// A benchmark of the server at this address, with no subscriber yet.
  init(_ options: BenchSpreadCommand, _ address: SocketAddress) throws {
    // Nothing noncopyable may be half there.
    let connection = try WireConnection(address, timeoutSeconds: Self.responseSeconds)
    audience = try Audience(
      address,
      (0..<options.subscribers).map { Audience.Seat(target: options.target(of: $0), countsCoalesced: true) })
    ledger = MessageLedger(values: options.objects)
    (self.options, self.address, self.connection) = (options, address, connection)
  }

  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless.
  mutating func run() throws -> SpreadReport {
    var report = SpreadReport(subscribers: options.subscribers, objects: options.objects)
    try makeObjects()
    report.alone = try writing()
    try audience.connect()
    // What a live query holds at first comes before this.
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

  /// Sets one object after the other at the rate, and reads what comes until nothing is missing.
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

  /// Sets one object of each of so many subscribers in one transaction, again and again.
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

  /// Compares how many changes every subscriber received with how many there were.
  private func compare(_ report: inout SpreadReport, since before: [Int]) {
    let published = ledger.current.published
    for (index, subscriber) in audience.subscribers.enumerated() {
      let coalesced = subscriber.coalesced ?? CoalescedScanner()
      let wanted = options.objects(of: index).reduce(0) { $0 + published[$1] - before[$1] }
      let count = subscriber.received - received[index] - coalesced.changes + coalesced.covered
      // A live query has many objects, whose messages may pass each other on their way to the server.
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
    /// From when a commit was due to its response.
    var responses = Latency()
    /// From before the request to the delivery.
    var latency = Latency()
    /// What the server used.
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
    /// From each request to its last delivery.
    var milliseconds: [Double] = []
    /// What the server used for all of them.
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
        format: "one transaction, told to %d streams: median %.1f ms (%@)", subscribers, milliseconds.median ?? 0,
        rounds)
      if let cpuMicrosecondsPerDelivery {
        line += String(format: "; server: %.1f µs CPU/delivery", cpuMicrosecondsPerDelivery)
      }
      return line
    }
  }

  var subscribers = 0
  var objects = 0
  /// Without subscribers.
  var alone = Phase()
  /// With all of them.
  var observed = Phase()
  /// All at once.
  var together = Together()
  /// How many changes came in the place of others.
  var coalesced = 0
  /// How many subscribers missed anything, or got it twice or out of order.
  var faulty = 0
  var closed = 0

  /// What the server used more for a commit that is delivered than for one that is not.
  private var cpuMicrosecondsPerDelivery: Double? {
    guard let alone = alone.cpuMicrosecondsPerCommit, let all = observed.cpuMicrosecondsPerCommit else { return nil }
    return (all - alone) * Double(observed.commits) / Double(max(observed.deliveries, 1))
  }

  /// Whether no subscriber received anything wrong.
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
