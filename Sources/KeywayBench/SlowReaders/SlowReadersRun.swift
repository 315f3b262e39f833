import KeyValueModel

/// One benchmark with slow readers: everybody reads, some stop, and read again.
struct SlowReadersRun: ~Copyable {
  private let plan: SlowReadersPlan
  private let publishers: PacedPublishers
  private let asking: PublishingConnection
  private var audience: Audience

  init(_ plan: SlowReadersPlan) throws(FanoutError) {
    // Nothing noncopyable may be half there.
    let asking = try PublishingConnection(plan.address, timeoutSeconds: plan.answerSeconds)
    let audience = try Audience(plan.address)
    self.plan = plan
    self.asking = asking
    self.audience = audience
    publishers = PacedPublishers(plan)
  }

  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless.
  mutating func run() throws(FanoutError) -> SlowReadersReport {
    var report = SlowReadersReport(subscribers: plan.subscribers, slow: plan.slow)
    for value in 0..<plan.values {
      try asking.exchange(plan.address.setting(plan.objectPath(value), #"{"text":""}"#))
    }
    try audience.open(plan.seats)
    audience.expectNumbers(above: MonotonicClock.now())
    publishers.start()
    defer { publishers.stop() }
    // What is done for the first time takes longer.
    _ = try phase(seconds: 2)
    report.baseline = try phase(seconds: plan.baselineSeconds)
    for index in 0..<plan.slow { try audience.pause(index) }
    report.stop = try phase(seconds: plan.stopSeconds)
    let status = try json("/v1/status")
    report.pendingBytes = Self.integer(status, "pendingBytes")
    report.lagging = Self.integer(status, "lagging")
    for index in 0..<plan.slow { try audience.resume(index) }
    report.catchUp = try catchUp()
    // A message is known by its beginning; doubles may come behind the last.
    let settled = MonotonicClock.now() + UInt64(FanoutRun.settleMilliseconds) * 1_000_000
    _ = try measured(from: 0) { now, _ in now >= settled }
    try compare(&report)
    return report
  }

  /// Reads for so long, and measures those that always do.
  private mutating func phase(seconds: Int) throws(FanoutError) -> SlowReadersReport.Phase {
    let end = MonotonicClock.now() + UInt64(seconds) * 1_000_000_000
    return try measured(from: publishers.progress.total) { now, _ in now >= end }
  }

  /// Lets the publishers finish, and reads until everybody has come to the last message.
  private mutating func catchUp() throws(FanoutError) -> SlowReadersReport.Phase {
    let published = publishers.progress.total
    publishers.stop()
    let end = MonotonicClock.now() + UInt64(plan.catchUpSeconds) * 1_000_000_000
    return try measured(from: published) { [plan, publishers] now, audience in
      let progress = publishers.progress
      guard now < end else { return true }
      guard progress.running == 0 else { return false }
      return audience.subscribers.indices.allSatisfy { index in
        audience.subscribers[index].last >= progress.last[plan.value(of: index)]
      }
    }
  }

  private mutating func measured(
    from published: Int, until isOver: (_ now: UInt64, borrowing Audience) -> Bool
  ) throws(FanoutError) -> SlowReadersReport.Phase {
    let tally = DeliveryTally()
    let plan = plan
    let before = try figures()
    let start = MonotonicClock.now()
    var now = start
    repeat {
      try audience.pump(milliseconds: 20) { index, numbers, now in
        if !plan.isSlow(index) { tally.count(numbers, at: now) }
      }
      if let failure = publishers.progress.failure { throw failure }
      now = MonotonicClock.now()
    } while !isOver(now, audience)
    var phase = SlowReadersReport.Phase(seconds: Double(now - start) / 1e9)
    phase.commits = publishers.progress.total - published
    phase.deliveries = tally.delivered
    phase.latency = tally.latency
    phase.typicalP99 = tally.typicalP99
    if let before, let after = try figures() {
      phase.residentBytes = after.residentBytes
      phase.cpuSeconds = after.cpuSeconds - before.cpuSeconds
    }
    return phase
  }

  /// Compares what everybody was told with what was published, and what they show with GET.
  private func compare(_ report: inout SlowReadersReport) throws(FanoutError) {
    let progress = publishers.progress
    for value in 0..<plan.values {
      let shown = String(decoding: try asking.exchange(plan.address.reading(plan.path(value))), as: UTF8.self)
      for index in stride(from: value, to: plan.subscribers, by: plan.values) {
        let subscriber = audience.subscribers[index]
        let isPresent = shown.hasPrefix("\"@@") && shown.contains("\(subscriber.last)@")
        let isClean = subscriber.doubled == 0 && subscriber.outOfOrder == 0
        let coalesced = subscriber.coalesced ?? CoalescedScanner()
        let told = subscriber.delivered - coalesced.changes + coalesced.covered
        let isComplete = told == progress.published[value] && isClean
        report.coalesced += coalesced.changes
        report.covered += coalesced.covered
        if plan.isSlow(index) {
          if isPresent { report.present += 1 }
          if isComplete { report.complete += 1 }
        } else if !isPresent || !isComplete {
          report.faulty += 1
        }
      }
    }
    report.closed = audience.closedCount
  }

  private func figures() throws(FanoutError) -> ProcessFigures? {
    guard let pid = plan.serverPID else { return nil }
    return try ProcessFigures(pid: pid)
  }

  private func json(_ path: String) throws(FanoutError) -> Value {
    let body = try asking.exchange(plan.address.reading(path))
    guard let value = try? Value(json: Array(body)) else { throw FanoutError("the answer of \(path) is no JSON") }
    return value
  }

  private static func integer(_ value: Value, _ name: String) -> Int {
    guard case .object(let members) = value, case .integer(let number)? = members[name] else { return -1 }
    return Int(number)
  }
}
