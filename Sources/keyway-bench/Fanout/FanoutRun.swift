import KeywayClient
import TestKit

/// One fan-out benchmark: all subscribers on this thread's epoll set, the publisher on a thread of its own.
struct FanoutRun: ~Copyable {
  /// No progress for so long ends the benchmark.
  private static let stallSeconds = 15

  private let options: BenchFanoutCommand
  private let publisher: Publishers
  private let ledger = MessageLedger(values: 1)
  private var audience: Audience
  private let tally = DeliveryTally()

  /// A benchmark of the server at this address, with nothing connected yet.
  init(_ options: BenchFanoutCommand, _ address: SocketAddress) throws {
    let path = ResourcePath.path(options.path)
    audience = try Audience(address, Array(repeating: Audience.Seat.observing(path), count: options.subscribers))
    publisher = Publishers(
      Publishers.Plan(
        address: address, paths: [path], pace: .pause(microseconds: options.interval), sizeBytes: options.size,
        messages: options.messages, timeoutSeconds: Double(Self.stallSeconds)), ledger)
    self.options = options
  }

  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless.
  mutating func run() throws -> FanoutReport {
    var report = FanoutReport(subscribers: options.subscribers, messages: options.messages)
    let before = try ProcessFigures.ifAsked(options.pid)
    let start = MonotonicClock.now()
    try audience.connect()
    report.connectSeconds = MonotonicClock.seconds(since: start)
    try audience.pump(seconds: 0.3)
    let connected = try ProcessFigures.ifAsked(options.pid)
    report.residentBytesGrown = connected.flatMap { after in before.map { after.residentBytes - $0.residentBytes } }
    try audience.pump(seconds: Double(options.idle))
    try deliver(into: &report)
    let after = try ProcessFigures.ifAsked(options.pid)
    report.cpuSeconds = after.flatMap { after in connected.map { after.cpuSeconds - $0.cpuSeconds } }
    return report
  }

  private mutating func deliver(into report: inout FanoutReport) throws {
    let start = MonotonicClock.now()
    audience.expectNumbers(above: start)
    publisher.start()
    defer { publisher.stop() }
    let end = try readAll()
    let tally = tally
    try audience.pump(seconds: Audience.settleSeconds) { _, numbers, now in tally.count(numbers, at: now) }
    _ = try publisher.isRunning()
    report.delivered = tally.delivered
    for subscriber in audience.subscribers {
      // More than all messages in growing order: something that was never published.
      report.doubled += subscriber.doubled + max(0, subscriber.delivered - options.messages)
      report.outOfOrder += subscriber.outOfOrder
      report.missing += max(0, options.messages - subscriber.delivered - subscriber.outOfOrder)
    }
    report.closed = audience.closedCount
    report.deliverySeconds = end > start ? Double(end - start) / 1e9 : 0
    report.published = publisher.outcome
    report.latency = tally.latency
  }

  /// Reads until everything is delivered or nothing has happened for the stall time; gives the moment of the last
  /// delivery. Throws where the publisher fails.
  private mutating func readAll() throws -> UInt64 {
    let wanted = options.subscribers * options.messages
    let stall = UInt64(Self.stallSeconds) * 1_000_000_000
    var last = (delivered: 0, published: 0, moment: MonotonicClock.now())
    var lastDelivery = last.moment
    while tally.delivered < wanted, audience.closedCount < options.subscribers {
      try pump(milliseconds: 200)
      let now = MonotonicClock.now()
      if tally.delivered != last.delivered {
        lastDelivery = now
        last = (tally.delivered, last.published, now)
        continue
      }
      // The publisher's locks are taken only while nothing is delivered.
      _ = try publisher.isRunning()
      let published = ledger.current.total
      if published != last.published { last = (last.delivered, published, now) }
      if now - last.moment > stall { break }
    }
    // The publisher still waits for its last response when the last delivery is faster.
    let deadline = Deadline(seconds: Double(Self.stallSeconds))
    while try publisher.isRunning(), !deadline.hasPassed { try pump(milliseconds: 10) }
    return lastDelivery
  }

  private mutating func pump(milliseconds: Int32) throws {
    let tally = tally
    try audience.pump(milliseconds: milliseconds) { _, numbers, now in tally.count(numbers, at: now) }
  }
}
