import ArgumentParser
import CommandSupport
import Foundation
import KeyValueModel
import KeywayClient
import Support
import TestKit

/// `keyway-bench fanout`: one writer and many subscribers.
struct BenchFanoutCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fanout",
    abstract: "Opens many subscribers of one value, sets it again and again, and checks and times every delivery.",
    discussion: """
      keyway-bench fanout --subscribers 8000 --messages 50 --pid $(pidof keyway)

      Without --interval, messages are sent in a burst, and a server may combine many into one send: deliveries/s then
      measures its batching, and is comparable only with servers that batch alike. With --interval, each message is a
      send of its own. CPU time has a resolution of 10 ms, so less than a second of it is a rough figure.

      Exits with 1 if any subscriber missed a message, or received one twice or out of order.
      """)

  @Option(help: "The number of subscribers.")
  var subscribers = 1000

  @Option(help: "The number of messages to publish.")
  var messages = 20

  @Option(help: ArgumentHelp("The size of a message.", valueName: "bytes"))
  var size = 100

  @Option(help: ArgumentHelp("The pause between messages: latency instead of throughput.", valueName: "microseconds"))
  var interval = 0

  @Option(help: "The key path that is set and observed; its object is created if it does not exist.")
  var path = "/v1/objects/Note/1/text"

  @Option(help: ArgumentHelp("The idle time before the first message.", valueName: "seconds"))
  var idle = 0

  @Option(help: "The server's process id, to measure its memory and CPU time.")
  var pid: Int?

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  func validate() throws {
    try ReportOptions.check([
      ("--subscribers", subscribers, 1...60_000), ("--messages", messages, 1...10_000_000),
      ("--size", size, 22...1_000_000), ("--interval", interval, 0...10_000_000), ("--idle", idle, 0...3600),
    ])
    guard object != nil else { throw ValidationError("--path must name an object and a key, as in Note/1/text") }
  }

  func run() throws {
    let address = try client.socketAddress
    try makeObject(address)
    var run = try FanoutRun(self, address)
    try report.show(try run.run())
  }

  /// The path of the object, and the key; nil if `path` does not have that form.
  private var object: (path: String, key: String)? {
    let parts = ResourcePath.path(path).split(separator: "/")
    guard parts.count == 5, parts[0] == "v1", parts[1] == "objects" else { return nil }
    return ("/" + parts[..<4].joined(separator: "/"), String(parts[4]))
  }

  /// Creates the object that the path belongs to, unless it exists.
  private func makeObject(_ address: SocketAddress) throws {
    guard let object else { return }
    let connection = try WireConnection(address, timeoutSeconds: client.timeout)
    guard try connection.exchange(WireRequest("GET", object.path)).status == 404 else { return }
    try connection.must(.setting(object.path, #"{"\#(object.key)":""}"#))
  }
}

/// One fan-out benchmark: all subscribers on this thread's epoll set, the publisher on a thread of its own.
private struct FanoutRun: ~Copyable {
  /// The time without progress after which the benchmark ends, in seconds.
  private static let stallSeconds = 15

  private let options: BenchFanoutCommand
  private let publisher: Publishers
  private let ledger = MessageLedger(values: 1)
  private var audience: Audience
  private let tally = DeliveryTally()

  /// Creates a benchmark of the server at an address, with nothing connected yet.
  init(_ options: BenchFanoutCommand, _ address: SocketAddress) throws {
    let path = ResourcePath.path(options.path)
    audience = try Audience(address, Array(repeating: Audience.Seat.observing(path), count: options.subscribers))
    publisher = Publishers(
      Publishers.Plan(
        address: address, paths: [path], pace: .pause(microseconds: options.interval), sizeBytes: options.size,
        messages: options.messages, timeoutSeconds: Double(Self.stallSeconds)), ledger)
    self.options = options
  }

  /// Runs the benchmark to its end, or until something makes its figures worthless.
  mutating func run() throws -> FanoutReport {
    var report = FanoutReport(subscribers: options.subscribers, messages: options.messages)
    let before = try ProcessFigures.ifAsked(options.pid)
    let start = SystemClock.now()
    try audience.connect()
    report.connectSeconds = SystemClock.seconds(since: start)
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
    let start = SystemClock.now()
    audience.expectNumbers(above: start)
    publisher.start()
    defer { publisher.stop() }
    let end = try readAll()
    let tally = tally
    try audience.pump(seconds: Audience.settleSeconds) { _, numbers, now in tally.count(numbers, at: now) }
    _ = try publisher.isRunning()
    report.delivered = tally.delivered
    for subscriber in audience.subscribers {
      // More deliveries than messages: something that was never published.
      report.doubled += subscriber.doubled + max(0, subscriber.delivered - options.messages)
      report.outOfOrder += subscriber.outOfOrder
      report.missing += max(0, options.messages - subscriber.delivered - subscriber.outOfOrder)
    }
    report.closed = audience.closedCount
    report.deliverySeconds = end > start ? Double(end - start) / 1e9 : 0
    report.published = publisher.outcome
    report.latency = tally.latency
  }

  /// Reads until everything is delivered or there is no progress for the stall time. Returns the time of the last
  /// delivery. Throws if the publisher fails.
  private mutating func readAll() throws -> UInt64 {
    let wanted = options.subscribers * options.messages
    let stall = UInt64(Self.stallSeconds) * 1_000_000_000
    var last = (delivered: 0, published: 0, moment: SystemClock.now())
    var lastDelivery = last.moment
    while tally.delivered < wanted, audience.closedCount < options.subscribers {
      try pump(milliseconds: 200)
      let now = SystemClock.now()
      if tally.delivered != last.delivered {
        lastDelivery = now
        last = (tally.delivered, last.published, now)
        continue
      }
      // Take the publisher's locks only while nothing is delivered.
      _ = try publisher.isRunning()
      let published = ledger.current.total
      if published != last.published { last = (last.delivered, published, now) }
      if now - last.moment > stall { break }
    }
    // The publisher may still wait for its last response when the last delivery arrives.
    let deadline = Deadline(seconds: Double(Self.stallSeconds))
    while try publisher.isRunning(), !deadline.hasPassed { try pump(milliseconds: 10) }
    return lastDelivery
  }

  private mutating func pump(milliseconds: Int32) throws {
    let tally = tally
    try audience.pump(milliseconds: milliseconds) { _, numbers, now in tally.count(numbers, at: now) }
  }
}

/// The figures of a fan-out benchmark.
private struct FanoutReport: BenchmarkReport {
  var subscribers = 0
  var messages = 0
  var connectSeconds = 0.0
  var delivered = 0
  var missing = 0
  var doubled = 0
  var outOfOrder = 0
  var closed = 0
  var deliverySeconds = 0.0
  var published = Publishers.Outcome()
  var latency = Latency()
  /// The growth of the server's memory while the subscribers connected, in bytes; nil if not measured.
  var residentBytesGrown: Int?
  /// The CPU time of the server from the first message to the last delivery, in seconds; nil if not measured.
  var cpuSeconds: Double?

  /// True if every subscriber received every message once and in order.
  var isFaultless: Bool { missing == 0 && doubled == 0 && outOfOrder == 0 && closed == 0 }

  private var deliveriesPerSecond: Double { deliverySeconds > 0 ? Double(delivered) / deliverySeconds : 0 }
  private var publishedPerSecond: Double { published.seconds > 0 ? Double(published.writes) / published.seconds : 0 }
  private var bytesPerSubscriber: Double? { residentBytesGrown.map { Double($0) / Double(max(subscribers, 1)) } }
  private var cpuMicrosecondsPerDelivery: Double? { cpuSeconds.map { $0 * 1e6 / Double(max(delivered, 1)) } }

  var json: Value {
    var object: JSONObject = [
      "subscribers": .count(subscribers), "messages": .count(messages), "connectSeconds": .rounded(connectSeconds),
      "delivered": .count(delivered), "missing": .count(missing), "doubled": .count(doubled),
      "outOfOrder": .count(outOfOrder), "closed": .count(closed), "deliverySeconds": .rounded(deliverySeconds),
      "deliveriesPerSecond": .rounded(deliveriesPerSecond), "publishedPerSecond": .rounded(publishedPerSecond),
      "latencyMicroseconds": .object(latency.json),
    ]
    if let bytesPerSubscriber { object["serverBytesPerSubscriber"] = .rounded(bytesPerSubscriber) }
    if let cpuMicrosecondsPerDelivery { object["serverMicrosecondsPerDelivery"] = .rounded(cpuMicrosecondsPerDelivery) }
    return .object(object)
  }

  var text: String {
    var lines = [
      String(format: "connected %d in %.2f s", subscribers, connectSeconds),
      String(
        format: "delivered %d of %d in %.3f s: %.0f/s; published %.0f/s", delivered, subscribers * messages,
        deliverySeconds, deliveriesPerSecond, publishedPerSecond),
      "latency µs: p50 \(latency.p50)  p90 \(latency.p90)  p99 \(latency.p99)  max \(latency.max)",
      "missing \(missing)  doubled \(doubled)  out of order \(outOfOrder)  closed \(closed)",
    ]
    if let bytesPerSubscriber, let cpuMicrosecondsPerDelivery {
      lines.append(
        String(
          format: "server: %.2f KiB/subscriber, %.2f µs CPU/delivery", bytesPerSubscriber / 1024,
          cpuMicrosecondsPerDelivery))
    }
    return lines.joined(separator: "\n")
  }
}
