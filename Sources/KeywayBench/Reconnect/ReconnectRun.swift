import Glibc

/// One benchmark of a crowd that comes back: everybody reads, is cut, misses something, and comes back at once while
/// others write.
struct ReconnectRun: ~Copyable {
  /// How many objects are written in one transaction of those that everybody hears of.
  private static let objectsPerTransaction = 500
  /// For so long the writers write before everybody comes back.
  private static let leadMicroseconds: UInt32 = 500_000

  private let plan: ReconnectPlan
  private let ledger: MessageLedger
  private var audience: Audience

  init(_ plan: ReconnectPlan) throws(FanoutError) {
    // Nothing noncopyable may be half there.
    let audience = try Audience(plan.address)
    self.plan = plan
    self.audience = audience
    ledger = MessageLedger(objects: plan.objects)
  }

  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless. `restart` ends the server and
  /// starts it again; nil where it goes on.
  mutating func run(restart: (() throws(FanoutError) -> Void)?) throws(FanoutError) -> ReconnectReport {
    var report = ReconnectReport(plan)
    try gather()
    report.before = try writing(seconds: plan.baselineSeconds)
    audience.cut()
    report.missedEvents = try writeMissed()
    if let restart {
      let start = MonotonicClock.now()
      try restart()
      report.restartSeconds = Double(MonotonicClock.now() - start) / 1e9
    }
    try comeBack(&report)
    try compare(&report)
    return report
  }

  /// Makes the objects, has everybody subscribe, and tells everybody something, so that he has an ID to go on from.
  private mutating func gather() throws(FanoutError) {
    let asking = try PublishingConnection(plan.address, timeoutSeconds: plan.answerSeconds)
    for object in 0..<plan.objects {
      try asking.exchange(plan.address.setting("/v1/objects/\(plan.object(object))", #"{"text":""}"#))
    }
    try audience.open(plan.seats)
    audience.expectNumbers(above: MonotonicClock.now())
    for first in stride(from: 0, to: plan.objects, by: Self.objectsPerTransaction) {
      try write(Array(first..<min(first + Self.objectsPerTransaction, plan.objects)), asking)
    }
    try awaitAll()
  }

  /// Writes the revisions that everybody misses; gives how many of them concern anybody, summed over the subscribers.
  private func writeMissed() throws(FanoutError) -> Int {
    let asking = try PublishingConnection(plan.address, timeoutSeconds: plan.answerSeconds)
    let before = ledger.current.published
    for number in 0..<plan.behind {
      try write(Array(stride(from: number % plan.groups, to: plan.objects, by: plan.groups)), asking)
    }
    let after = ledger.current.published
    return (0..<plan.subscribers).reduce(0) { sum, subscriber in
      let object = plan.object(of: subscriber)
      return sum + after[object] - before[object]
    }
  }

  /// Gives objects a message, all in one transaction.
  private func write(_ objects: [Int], _ asking: borrowing PublishingConnection) throws(FanoutError) {
    let number = MonotonicClock.now()
    let message = SocketAddress.message(number, sizeBytes: plan.sizeBytes)
    try asking.exchange(
      plan.address.transaction(setting: objects.map { (plan.object($0), "text", message) }))
    for object in objects { ledger.note(object, number) }
  }

  /// Writes for so long at the steady rate, and waits until everybody has everything.
  private mutating func writing(seconds: Int) throws(FanoutError) -> SteadyWriters.Outcome {
    let writers = SteadyWriters(plan, ledger)
    writers.start()
    defer { writers.stop() }
    let end = MonotonicClock.now() + UInt64(seconds) * 1_000_000_000
    while MonotonicClock.now() < end { try audience.pump(milliseconds: 20) { _, _, _ in } }
    return try finish(writers)
  }

  /// Waits for the last answers of the writers, and until everybody has everything.
  private mutating func finish(_ writers: SteadyWriters) throws(FanoutError) -> SteadyWriters.Outcome {
    writers.stop()
    // An answer that does not come in time is a failure of the writer.
    while try writers.outcome().isRunning { try audience.pump(milliseconds: 20) { _, _, _ in } }
    try awaitAll()
    return try writers.outcome().outcome
  }

  /// Reads until everybody has the last message of his object.
  private mutating func awaitAll() throws(FanoutError) {
    let last = ledger.current.last
    let end = MonotonicClock.now() + UInt64(plan.catchUpSeconds) * 1_000_000_000
    while audience.subscribers.indices.contains(where: { audience.subscribers[$0].last < last[plan.object(of: $0)] }) {
      guard MonotonicClock.now() < end else { return }
      try audience.pump(milliseconds: 20) { _, _, _ in }
    }
  }

  /// Everybody comes back at once, while others write.
  private mutating func comeBack(_ report: inout ReconnectReport) throws(FanoutError) {
    let writers = SteadyWriters(plan, ledger)
    writers.start()
    defer { writers.stop() }
    // They are under way when the crowd comes.
    usleep(Self.leadMicroseconds)
    writers.measureAnew()
    let arrivals = Arrivals(plan, ledger.current.last)
    let plan = plan
    let start = MonotonicClock.now()
    try audience.reopen(atOnce: plan.atOnce) { index, subscriber in
      plan.address.subscription(plan.path(plan.object(of: index)), lastEventID: subscriber.ids?.last ?? [])
    } receive: { index, numbers, now in
      arrivals.note(index, numbers, now)
    }
    report.openSeconds = Double(MonotonicClock.now() - start) / 1e9
    let end = start + UInt64(plan.catchUpSeconds) * 1_000_000_000
    while arrivals.missing > 0, MonotonicClock.now() < end {
      try audience.pump(milliseconds: 20) { index, numbers, now in arrivals.note(index, numbers, now) }
    }
    report.late = arrivals.missing
    report.caughtUp = arrivals.latency(since: start)
    report.during = try finish(writers)
    // A message is known by its beginning; doubles may come behind the last.
    let settled = MonotonicClock.now() + UInt64(FanoutRun.settleMilliseconds) * 1_000_000
    while MonotonicClock.now() < settled { try audience.pump(milliseconds: 20) { _, _, _ in } }
  }

  /// Compares what everybody was told with what was published.
  private func compare(_ report: inout ReconnectReport) throws(FanoutError) {
    let page = ledger.current
    for index in 0..<plan.subscribers {
      let subscriber = audience.subscribers[index]
      let object = plan.object(of: index)
      let isExact =
        subscriber.delivered == page.published[object] && subscriber.last == page.last[object]
        && subscriber.doubled == 0 && subscriber.outOfOrder == 0
      if isExact { report.exact += 1 }
    }
    report.closed = audience.closedCount
  }
}
