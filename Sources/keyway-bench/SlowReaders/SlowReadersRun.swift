import KeyValueModel
import TestKit

/// One benchmark with slow readers: all read, some stop, and read again.
struct SlowReadersRun: ~Copyable {
  /// What the kernel keeps for a reader that stops.
  private static let slowReceiveBufferBytes: Int32 = 16_384
  /// How long those that stopped may take to come to the present.
  private static let catchUpSeconds = 60
  /// How long a response may take.
  private static let responseSeconds = 15.0

  private let options: BenchSlowReadersCommand
  private let ledger: MessageLedger
  private let publishers: Publishers
  private let connection: WireConnection
  private var audience: Audience

  /// A benchmark of the server at this address, with no subscriber yet.
  init(_ options: BenchSlowReadersCommand, _ address: SocketAddress) throws {
    // Nothing noncopyable may be half there.
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

  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless.
  mutating func run() throws -> SlowReadersReport {
    var report = SlowReadersReport(subscribers: options.subscribers, slow: options.slow)
    for value in 0..<options.values { try connection.must(.setting(options.objectPath(value), #"{"text":""}"#)) }
    try audience.connect()
    audience.expectNumbers(above: MonotonicClock.now())
    publishers.start()
    defer { publishers.stop() }
    // What is done for the first time takes longer.
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

  /// Reads for so long, and measures those that always do.
  private mutating func phase(seconds: Int) throws -> SlowReadersReport.Phase {
    let deadline = Deadline(seconds: Double(seconds))
    return try measured { _, _ in deadline.hasPassed }
  }

  /// Lets the publishers finish, and reads until every subscriber has come to the last message.
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
    until isOver: (_ audience: borrowing Audience, _ arePublishing: Bool) -> Bool
  ) throws -> SlowReadersReport.Phase {
    let tally = DeliveryTally()
    let options = options
    let before = try ProcessFigures.ifAsked(options.pid)
    let published = ledger.current.total
    let start = MonotonicClock.now()
    repeat {
      try audience.pump(milliseconds: 20) { index, numbers, now in
        if !options.isSlow(index) { tally.count(numbers, at: now) }
      }
    } while try !isOver(audience, publishers.isRunning())
    var phase = SlowReadersReport.Phase(seconds: MonotonicClock.seconds(since: start))
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

  /// Compares what every subscriber received with what was published, and what it shows with GET.
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
