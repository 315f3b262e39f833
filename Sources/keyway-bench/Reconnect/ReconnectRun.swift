import Glibc
import TestKit

/// One benchmark of a crowd that comes back: all subscribers read, are cut, miss something, and come back at once while
/// others write.
struct ReconnectRun: ~Copyable {
  /// How many objects are written in one transaction of those that concern all subscribers.
  private static let objectsPerTransaction = 500
  /// For so long the writers write before the subscribers come back.
  private static let leadMicroseconds: UInt32 = 500_000

  /// How long it may take until every subscriber has caught up.
  private static let catchUpSeconds = 60.0
  /// How long a response may take.
  private static let responseSeconds = 30.0

  private let options: BenchReconnectCommand
  private let address: SocketAddress
  private let ledger: MessageLedger
  private var audience: Audience

  /// A benchmark of the server at this address, with no subscriber yet.
  init(_ options: BenchReconnectCommand, _ address: SocketAddress) throws {
    audience = try Audience(
      address,
      (0..<options.subscribers).map { subscriber in
        Audience.Seat.observing(options.path(options.object(of: subscriber)), keepsID: true)
      })
    (self.options, self.address) = (options, address)
    ledger = MessageLedger(values: options.objects)
  }

  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless. `restart` ends the server
  /// and starts it again; nil where it goes on.
  mutating func run(restart: (() throws -> Void)?) throws -> ReconnectReport {
    var report = ReconnectReport(options)
    try gather()
    report.before = try writing(seconds: options.baseline)
    audience.cut()
    report.missedEvents = try writeMissed()
    if let restart {
      let start = MonotonicClock.now()
      try restart()
      report.restartSeconds = MonotonicClock.seconds(since: start)
    }
    try comeBack(&report)
    try compare(&report)
    return report
  }

  /// Makes the objects, connects all subscribers, and sets every object once, so that each has an id to resume from.
  private mutating func gather() throws {
    let connection = try connect()
    for object in 0..<options.objects {
      try connection.must(.setting("/v1/objects/\(options.object(object))", #"{"text":""}"#))
    }
    try audience.connect()
    audience.expectNumbers(above: MonotonicClock.now())
    for first in stride(from: 0, to: options.objects, by: Self.objectsPerTransaction) {
      try write(Array(first..<min(first + Self.objectsPerTransaction, options.objects)), connection)
    }
    try awaitAll()
  }

  private func connect() throws -> WireConnection {
    try WireConnection(address, timeoutSeconds: Self.responseSeconds)
  }

  /// Writes the revisions that every subscriber misses; gives how many events that is, summed over the subscribers.
  private func writeMissed() throws -> Int {
    let connection = try connect()
    let before = ledger.current.published
    for number in 0..<options.behind {
      try write(Array(stride(from: number % options.groups, to: options.objects, by: options.groups)), connection)
    }
    let after = ledger.current.published
    return (0..<options.subscribers).map(options.object(of:)).reduce(0) { $0 + after[$1] - before[$1] }
  }

  /// Sets objects to a message, all in one transaction.
  private func write(_ objects: [Int], _ connection: WireConnection) throws {
    let number = MonotonicClock.now()
    try connection.must(
      .transaction(
        setting: "text", of: objects.map(options.object), WireRequest.message(number, sizeBytes: options.size)))
    for object in objects { ledger.note(object, number) }
  }

  private func writers() -> Publishers {
    Publishers(
      Publishers.Plan(
        address: address, paths: (0..<options.objects).map(options.path), connections: options.writers,
        pace: .perSecond(options.rate), sizeBytes: options.size, timeoutSeconds: Self.responseSeconds), ledger)
  }

  /// Writes for so long at the steady rate, and waits until every subscriber has everything.
  private mutating func writing(seconds: Int) throws -> Publishers.Outcome {
    let writers = writers()
    writers.start()
    defer { writers.stop() }
    try audience.pump(seconds: Double(seconds))
    return try finish(writers)
  }

  /// Waits for the last responses to the writers, and until every subscriber has everything.
  private mutating func finish(_ writers: Publishers) throws -> Publishers.Outcome {
    writers.stop()
    // A response that does not come in time is a failure of the writer.
    while try writers.isRunning() { try audience.pump(milliseconds: 20) { _, _, _ in } }
    try awaitAll()
    return writers.outcome
  }

  /// Reads until every subscriber has the last message of its object, or the time to catch up is over.
  private mutating func awaitAll() throws {
    let last = ledger.current.last
    let deadline = Deadline(seconds: Self.catchUpSeconds)
    while !deadline.hasPassed,
      audience.subscribers.indices.contains(where: { audience.subscribers[$0].last < last[options.object(of: $0)] })
    { try audience.pump(milliseconds: 20) { _, _, _ in } }
  }

  /// All subscribers come back at once, while others write.
  private mutating func comeBack(_ report: inout ReconnectReport) throws {
    let writers = writers()
    writers.start()
    defer { writers.stop() }
    // They are under way when the crowd comes.
    usleep(Self.leadMicroseconds)
    writers.measureAnew()
    let arrivals = Arrivals(options, ledger.current.last)
    let start = MonotonicClock.now()
    let deadline = Deadline(seconds: Self.catchUpSeconds)
    try audience.connect(atOnce: options.atOnce, receive: arrivals.note)
    report.openSeconds = MonotonicClock.seconds(since: start)
    while arrivals.missing > 0, !deadline.hasPassed { try audience.pump(milliseconds: 20, receive: arrivals.note) }
    report.late = arrivals.missing
    report.caughtUp = arrivals.latency(since: start)
    report.during = try finish(writers)
    try audience.pump(seconds: Audience.settleSeconds)
  }

  /// Compares what every subscriber received with what was published.
  private func compare(_ report: inout ReconnectReport) throws {
    let page = ledger.current
    for index in 0..<options.subscribers {
      let subscriber = audience.subscribers[index]
      let object = options.object(of: index)
      let isExact =
        subscriber.delivered == page.published[object] && subscriber.last == page.last[object]
        && subscriber.doubled == 0 && subscriber.outOfOrder == 0
      if isExact { report.exact += 1 }
    }
    report.closed = audience.closedCount
  }
}
