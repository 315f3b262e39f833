/// One fan-out benchmark: all subscribers on this thread's epoll set, the publisher on a thread of its own.
struct FanoutRun: ~Copyable {
  /// How long doubles are waited for behind the last delivery.
  static let settleMilliseconds: Int32 = 200

  private let plan: FanoutPlan
  private var audience: Audience
  private let tally = DeliveryTally()

  init(_ plan: FanoutPlan) throws(FanoutError) {
    self.plan = plan
    audience = try Audience(plan.address)
  }

  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless.
  mutating func run() throws(FanoutError) -> FanoutReport {
    var report = FanoutReport(subscribers: plan.subscribers, messages: plan.messages)
    let before = try figures()
    let start = MonotonicClock.now()
    try audience.open(Array(repeating: Audience.Seat(request: plan.subscription), count: plan.subscribers))
    report.connectSeconds = Self.seconds(from: start, to: MonotonicClock.now())
    try rest(milliseconds: 300)
    let connected = try figures()
    report.residentBytesGrown = connected.flatMap { after in before.map { after.residentBytes - $0.residentBytes } }
    try rest(milliseconds: plan.idleSeconds * 1000)
    try deliver(into: &report)
    let after = try figures()
    report.cpuSeconds = after.flatMap { after in connected.map { after.cpuSeconds - $0.cpuSeconds } }
    return report
  }

  private func figures() throws(FanoutError) -> ProcessFigures? {
    guard let pid = plan.serverPID else { return nil }
    return try ProcessFigures(pid: pid)
  }

  // MARK: Delivering

  private mutating func deliver(into report: inout FanoutReport) throws(FanoutError) {
    let publisher = FanoutPublisher(plan)
    defer { publisher.stop() }
    let start = MonotonicClock.now()
    audience.expectNumbers(above: start)
    publisher.start()
    let end = try readAll(publisher)
    try rest(milliseconds: Int(Self.settleMilliseconds))
    let progress = publisher.progress
    if let failure = progress.failure { throw failure }
    report.delivered = tally.delivered
    let subscribers = audience.subscribers
    report.doubled = subscribers.reduce(0) { $0 + $1.doubled }
    report.outOfOrder = subscribers.reduce(0) { $0 + $1.outOfOrder }
    report.missing = subscribers.reduce(0) { $0 + max(0, plan.messages - $1.delivered - $1.outOfOrder) }
    // More than all messages in growing order: something that nobody published.
    report.doubled += subscribers.reduce(0) { $0 + max(0, $1.delivered - plan.messages) }
    report.closed = audience.closedCount
    report.deliverySeconds = Self.seconds(from: progress.startNanoseconds, to: end)
    report.publishSeconds = Self.seconds(from: progress.startNanoseconds, to: progress.endNanoseconds)
    report.published = progress.published
    report.latency = tally.latency
  }

  /// Reads until everything is delivered, the publisher fails, or nothing has happened for the stall time; gives the
  /// moment of the last delivery.
  private mutating func readAll(_ publisher: FanoutPublisher) throws(FanoutError) -> UInt64 {
    let wanted = plan.subscribers * plan.messages
    let stall = UInt64(plan.stallSeconds) * 1_000_000_000
    var last = (delivered: tally.delivered, published: 0, moment: MonotonicClock.now())
    var lastDelivery = last.moment
    while tally.delivered < wanted, audience.closedCount < plan.subscribers {
      try pump(milliseconds: 200)
      let now = MonotonicClock.now()
      if tally.delivered != last.delivered { lastDelivery = now }
      // The lock is the publisher's too: only now and then.
      let isIdle = tally.delivered == last.delivered
      let progress = isIdle ? publisher.progress : nil
      if progress?.failure != nil { break }
      let published = progress?.published ?? last.published
      if !isIdle || published != last.published {
        last = (tally.delivered, published, now)
      } else if now - last.moment > stall {
        break
      }
    }
    // The publisher still waits for its last answer when the last delivery is faster.
    let deadline = MonotonicClock.now() + stall
    while !publisher.progress.isDone, MonotonicClock.now() < deadline { try pump(milliseconds: 10) }
    return lastDelivery
  }

  private mutating func pump(milliseconds: Int32) throws(FanoutError) {
    let tally = tally
    try audience.pump(milliseconds: milliseconds) { _, numbers, now in tally.count(numbers, at: now) }
  }

  private mutating func rest(milliseconds: Int) throws(FanoutError) {
    let end = MonotonicClock.now() + UInt64(milliseconds) * 1_000_000
    while case let now = MonotonicClock.now(), now < end {
      try pump(milliseconds: Int32(min((end - now) / 1_000_000 + 1, 200)))
    }
  }

  private static func seconds(from start: UInt64, to end: UInt64) -> Double {
    end > start ? Double(end - start) / 1e9 : 0
  }
}
