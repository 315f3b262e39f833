import KeyValueModel
import TestKit

/// One benchmark of many streams that each observe something else.
struct SpreadRun: ~Copyable {
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
    audience.expectNumbers(above: MonotonicClock.now())
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
      try connection.must(
        WireRequest("POST", "/v1/transactions", body: #"{"operations":[\#(operations.joined(separator: ","))]}"#))
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
    let start = MonotonicClock.now()
    publishers.start()
    defer { publishers.stop() }
    let end = Deadline(seconds: Double(options.seconds))
    while !end.hasPassed, try publishers.isRunning() { try pump(tally) }
    publishers.stop()
    while try publishers.isRunning() { try pump(tally) }
    var phase = SpreadReport.Phase(seconds: MonotonicClock.seconds(since: start))
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
      let number = MonotonicClock.now()
      let message = WireRequest.message(number, sizeBytes: options.size)
      let request = WireRequest.transaction(setting: options.key, of: objects.map(options.name), message)
      let start = MonotonicClock.now()
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
