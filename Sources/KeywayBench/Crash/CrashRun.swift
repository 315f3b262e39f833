import Foundation
import Glibc
import KeyValueModel

/// A crash test: a server that is ended again and again under writers and subscribers, and every promise that it made
/// compared with what is there afterwards.
final class CrashRun {
  let plan: CrashPlan
  let ledger = CrashLedger()
  private let server: CrashServer
  private let writers: [CrashWriter]
  private let subscribers: [CrashSubscriber]
  private var random: CrashRandom
  private var report: CrashReport
  /// How many revisions the server of now and the one before keep, and from where on there must be history.
  private var history = CrashHistory()

  /// Makes the directory and whatever goes into it.
  init(_ plan: CrashPlan) throws {
    self.plan = plan
    try FileManager.default.createDirectory(atPath: plan.directory, withIntermediateDirectories: true)
    try CrashSchema.yaml.write(toFile: plan.schemaFile, atomically: true, encoding: .utf8)
    server = try CrashServer(plan)
    let ledger = ledger
    writers = (0..<plan.writers).map { CrashWriter($0, plan: plan, ledger: ledger) }
    subscribers = writers.flatMap { writer in
      CrashObservation.allCases.map { CrashSubscriber($0, of: writer.world, plan: plan, ledger: ledger) }
    }
    random = CrashRandom(seed: plan.seed)
    report = CrashReport(seed: plan.seed, figures: ledger.figures, directory: plan.directory)
  }

  /// Runs all rounds, or up to the first in which a promise is broken.
  func run(progress: (Int) -> Void) -> CrashReport {
    let start = MonotonicClock.now()
    do {
      try found()
      for round in 1...plan.rounds where ledger.isFaultless {
        ledger.begin(round: round)
        try self.round()
        report.rounds = round
        progress(round)
      }
      try finish()
    } catch {
      ledger.violation("\(error)")
    }
    report.figures = ledger.figures
    report.seconds = Double(MonotonicClock.now() - start) / 1e9
    return report
  }

  /// The first start, with an empty store.
  private func found() throws {
    try start()
    let connection = try connect()
    let status = try status(over: connection)
    guard status.member("revision").whole == 0, status.member("objects").whole == 0 else {
      throw CrashError.malformed("the store is not empty: \(status.json)")
    }
    for writer in writers { try writer.found(over: connection) }
    for subscriber in subscribers { subscriber.start(port: server.port) }
    try awaitPresence()
  }

  /// Writes, an end, a recovery, and the comparison.
  private func round() throws {
    let enough = ledger.figures.acknowledgements + Int.random(in: 10...60, using: &random)
    for writer in writers { writer.start(port: server.port) }
    try wait("enough writes") { ledger.figures.acknowledgements >= enough || !ledger.isFaultless }
    try end(CrashEnding.random(using: &random))
    try wait("the writers' end") { !writers.contains { $0.isWriting } }
    try recover()
    try verify()
  }

  private func end(_ ending: CrashEnding) throws {
    report.endings[ending, default: 0] += 1
    let pause = useconds_t.random(in: 0...250_000, using: &random)
    switch ending {
    case .killed:
      usleep(pause)
      try expect("signal 9", server.end(SIGKILL, withinSeconds: plan.patienceSeconds))
    case .killedWhileTidying:
      awaitTidying()
      usleep(pause % 4000)
      try expect("signal 9", server.end(SIGKILL, withinSeconds: plan.patienceSeconds))
    case .drained:
      usleep(pause % 50_000)
      try expect("exit 0", server.end(SIGTERM, withinSeconds: 12))
    case .killedWhileDraining:
      usleep(pause % 50_000)
      server.send(SIGTERM)
      usleep(pause % 30_000)
      // It may have been quicker.
      server.send(SIGKILL)
      let end = try server.waitForEnd(withinSeconds: plan.patienceSeconds)
      if end != "exit 0" { try expect("signal 9", end) }
    }
  }

  private func expect(_ expected: String, _ end: String) throws {
    if end != expected { ledger.violation("the server's end was '\(end)', not '\(expected)'; see \(plan.logFile)") }
  }

  /// Waits until the number of the store's files changes; not long, since nobody says that it does.
  private func awaitTidying() {
    let deadline = MonotonicClock.now() + 500_000_000
    let before = storeFiles()
    while MonotonicClock.now() < deadline, storeFiles() == before { usleep(200) }
  }

  private func storeFiles() -> Set<String> {
    Set((try? FileManager.default.subpathsOfDirectory(atPath: plan.store)) ?? [])
  }

  /// Starts the server; sometimes it is killed before it has recovered, again and again.
  private func recover() throws {
    while random.chance(15) {
      try server.start(settings())
      usleep(useconds_t.random(in: 0...60_000, using: &random))
      let end = try server.end(SIGKILL, withinSeconds: plan.patienceSeconds)
      try expect("signal 9", end)
      report.recoveriesKilled += 1
    }
    try start()
  }

  private func start() throws {
    let start = MonotonicClock.now()
    try server.start(settings())
    try server.waitUntilReady()
    report.slowestRecoverySeconds = max(
      report.slowestRecoverySeconds, Double(MonotonicClock.now() - start) / 1e9)
  }

  /// The settings of one life: a history and snapshots so small that both are tidied all the time, or the defaults.
  private func settings() -> [String: String] {
    var settings = ["heartbeat.seconds": "1", "seed": "none"]
    let revisions = [40, 300, 10_000].randomElement(using: &random) ?? 300
    settings["history.revisions"] = "\(revisions)"
    settings["snapshot.revisions"] = "\([10, 60, 500, 100_000].randomElement(using: &random) ?? 60)"
    history.keep(revisions)
    return settings
  }

  /// Compares what is there with all that was promised; nobody writes meanwhile.
  private func verify() throws {
    let connection = try connect()
    let status = try status(over: connection)
    let promised = ledger.figures.promised
    let revision = status.member("revision").whole ?? -1
    if revision < promised { ledger.violation("recovered to revision \(revision), but \(promised) was told") }
    for writer in writers { writer.verify(over: connection) }
    let commits = ledger.figures.commits
    if revision != commits, ledger.isFaultless {
      ledger.violation("the revision is \(revision), of \(commits) writes that were done")
    }
    let objects = writers.map(\.world.objectCount).reduce(0, +)
    if status.member("objects").whole != Int64(objects), ledger.isFaultless {
      ledger.violation("there are \(status.member("objects").json) objects and should be \(objects)")
    }
    if let problem = history.check(status, revision: revision) { ledger.violation(problem) }
    try awaitPresence()
  }

  /// Waits until every subscriber shows the present state.
  private func awaitPresence() throws {
    let deadline = MonotonicClock.now() + UInt64(plan.patienceSeconds) * 1_000_000_000
    for subscriber in subscribers {
      let world = writers[subscriber.writer].world
      while let difference = subscriber.difference(from: world), ledger.isFaultless {
        guard MonotonicClock.now() < deadline else {
          return ledger.violation("\(subscriber.name) was not told everything: \(difference)")
        }
        usleep(500)
      }
    }
  }

  /// The last end, and that of all threads.
  private func finish() throws {
    for subscriber in subscribers { subscriber.stop() }
    try expect("exit 0", server.end(SIGTERM, withinSeconds: 12))
    try wait("the subscribers' end") { !subscribers.contains { $0.isRunning } }
  }

  private func wait(_ what: String, until isDone: () -> Bool) throws {
    let deadline = MonotonicClock.now() + UInt64(plan.patienceSeconds) * 1_000_000_000
    while !isDone() {
      guard MonotonicClock.now() < deadline else { throw CrashError.timedOut(what) }
      usleep(500)
    }
  }

  private func connect() throws -> CrashConnection {
    try CrashConnection(port: server.port, timeoutSeconds: plan.patienceSeconds)
  }

  /// The server's status, with the epoch checked.
  private func status(over connection: CrashConnection) throws -> Value {
    let answer = try connection.exchange(CrashRequest(path: "/v1/status"))
    guard answer.isSuccess, let epoch = answer.json.member("epoch").text else {
      throw CrashError.malformed("/v1/status: \(answer.status) \(answer.text)")
    }
    ledger.check(epoch: epoch, by: "/v1/status")
    return answer.json
  }
}
