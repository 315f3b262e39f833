import Foundation
import Glibc
import KeyValueModel
import Support
import TestKit

/// A crash test: it ends a server again and again under writers and subscribers, and compares every promise of the
/// server with its state afterwards.
final class CrashTest {
  /// The exit status of a program that SIGKILL ended.
  private static let killed = 128 + SIGKILL

  private let plan: CrashPlan
  private let ledger = PromiseLedger()
  private let server: KeywayServer
  private let writers: [CrashWriter]
  private let subscribers: [CrashSubscriber]
  private var random: SplitMix64
  private var report: CrashReport
  /// The revisions that the server's history must include.
  private var history = HistoryWindow()

  /// Creates the directory and its contents.
  init(_ plan: CrashPlan) throws {
    self.plan = plan
    try FileManager.default.createDirectory(atPath: plan.directory, withIntermediateDirectories: true)
    try CrashSchema.yaml.write(toFile: plan.schemaFile, atomically: true, encoding: .utf8)
    server = try KeywayServer(
      program: plan.program, ["--store", plan.store, "--schema", plan.schemaFile], output: .log(plan.logFile))
    let ledger = ledger
    writers = (0..<plan.writers).map { CrashWriter($0, seed: plan.seed, ledger: ledger) }
    subscribers = writers.flatMap { writer in
      CrashSubscription.allCases.map { CrashSubscriber($0, of: writer.objects, ledger: ledger) }
    }
    random = SplitMix64(seed: plan.seed)
    report = CrashReport(seed: plan.seed, figures: ledger.figures, directory: plan.directory)
  }

  /// Runs all rounds, or up to the first in which a promise is broken or the task is cancelled.
  func run(progress: (Int) -> Void) -> CrashReport {
    let start = SystemClock.now()
    do {
      try begin()
      for round in 1...plan.rounds where ledger.isFaultless && !Task.isCancelled {
        ledger.begin(round: round)
        try self.round()
        report.rounds = round
        progress(round)
      }
      try finish()
    } catch let error as LoopbackError where error.reason == .interrupted {
      // The round under way does not count.
    } catch {
      ledger.violation("\(error)")
    }
    report.figures = ledger.figures
    report.seconds = SystemClock.seconds(since: start)
    return report
  }

  /// Starts the server for the first time, with an empty store.
  private func begin() throws {
    try start()
    let connection = try connect()
    let status = try status(over: connection)
    guard status["revision"].whole == 0, status["objects"].whole == 0 else {
      throw LoopbackError("the store is not empty: \(status.json)")
    }
    for writer in writers { try writer.found(over: connection) }
    for subscriber in subscribers { subscriber.start(port: server.port) }
    try awaitPresence()
  }

  /// Runs one round: writes, an end of the server, a recovery, and the comparison.
  private func round() throws {
    let enough = ledger.figures.acknowledgements + Int.random(in: 10...60, using: &random)
    for writer in writers { writer.start(port: server.port) }
    try wait("enough writes") { ledger.figures.acknowledgements >= enough || !ledger.isFaultless }
    try end(ServerEnding.random(using: &random))
    try wait("the writers' end") { !writers.contains { $0.isWriting } }
    try recover()
    try verify()
  }

  private func end(_ ending: ServerEnding) throws {
    let pause = useconds_t.random(in: 0...250_000, using: &random)
    switch ending {
    case .killed:
      usleep(pause)
      try kill()
    case .killedWhileTidying:
      awaitTidying()
      usleep(pause % 4000)
      try kill()
    case .drained:
      report.drained += 1
      usleep(pause % 50_000)
      try stop()
    case .killedWhileDraining:
      usleep(pause % 50_000)
      server.send(SIGTERM)
      usleep(pause % 30_000)
      // The drain may have ended before the signal.
      let status = try server.end(SIGKILL, within: CrashPlan.patienceSeconds)
      if status != 0 { expect(Self.killed, status) }
    }
  }

  /// Ends the server with SIGKILL.
  private func kill() throws { expect(Self.killed, try server.end(SIGKILL, within: CrashPlan.patienceSeconds)) }

  /// Ends the server with SIGTERM, after its drain.
  private func stop() throws { expect(0, try server.end(SIGTERM, within: 12)) }

  private func expect(_ expected: Int32, _ status: Int32) {
    guard status != expected else { return }
    ledger.violation("the server ended with status \(status), not \(expected); see \(plan.logFile)")
  }

  /// Waits until the set of the store's files changes; only briefly, since it need not.
  private func awaitTidying() {
    let before = storeFiles()
    _ = Deadline(seconds: 0.5).awaits(pauseMicroseconds: 200) { storeFiles() != before }
  }

  private func storeFiles() -> Set<String> {
    Set((try? FileManager.default.subpathsOfDirectory(atPath: plan.store)) ?? [])
  }

  /// Starts the server, and sometimes kills it before it has recovered, again and again.
  private func recover() throws {
    while random.chance(15) {
      try server.start(settings: settings())
      usleep(useconds_t.random(in: 0...60_000, using: &random))
      try kill()
      report.recoveriesKilled += 1
    }
    try start()
  }

  private func start() throws {
    let start = SystemClock.now()
    try server.start(settings: settings())
    try server.awaitReady(seconds: CrashPlan.patienceSeconds)
    report.slowestRecoverySeconds = max(report.slowestRecoverySeconds, SystemClock.seconds(since: start))
  }

  /// Returns the settings of one start: a history and snapshots so small that both are pruned all the time, or the
  /// defaults.
  private func settings() -> [String: String] {
    var settings = ["heartbeat.seconds": "1", "seed": "none"]
    let revisions = [40, 300, 10_000].randomElement(using: &random) ?? 300
    settings["history.revisions"] = "\(revisions)"
    settings["snapshot.revisions"] = "\([10, 60, 500, 100_000].randomElement(using: &random) ?? 60)"
    history.keep(revisions)
    return settings
  }

  /// Compares the server's state with all promises; nothing is written meanwhile.
  private func verify() throws {
    let connection = try connect()
    let status = try status(over: connection)
    let promised = ledger.figures.promised
    let revision = status["revision"].whole ?? -1
    if revision < promised { ledger.violation("recovered to revision \(revision), but \(promised) was promised") }
    for writer in writers { writer.verify(over: connection) }
    let commits = ledger.figures.commits
    if revision != commits, ledger.isFaultless {
      ledger.violation("the revision is \(revision), of \(commits) writes that were done")
    }
    let objects = writers.map(\.objects.objectCount).reduce(0, +)
    if status["objects"].whole != objects, ledger.isFaultless {
      ledger.violation("the server has \(status["objects"].json) objects, not \(objects)")
    }
    if let problem = history.check(status, revision: revision) { ledger.violation(problem) }
    try awaitPresence()
  }

  /// Waits until every subscriber shows the present state.
  private func awaitPresence() throws {
    let deadline = Deadline(seconds: CrashPlan.patienceSeconds)
    for subscriber in subscribers {
      let objects = writers[subscriber.writer].objects
      let isFinished = deadline.awaits(pauseMicroseconds: 500) {
        subscriber.difference(from: objects) == nil || !ledger.isFaultless
      }
      guard isFinished else {
        let difference = subscriber.difference(from: objects) ?? "now it has"
        return ledger.violation("\(subscriber.name) did not receive everything: \(difference)")
      }
    }
  }

  /// Ends the server and all threads.
  private func finish() throws {
    for subscriber in subscribers { subscriber.stop() }
    try stop()
    try wait("the subscribers' end") { !subscribers.contains { $0.isRunning } }
  }

  private func wait(_ what: String, until isDone: () -> Bool) throws {
    guard Deadline(seconds: CrashPlan.patienceSeconds).awaits(pauseMicroseconds: 500, isDone) else {
      throw LoopbackError(.timedOut, what)
    }
  }

  private func connect() throws -> WireConnection {
    try WireConnection(SocketAddress(port: server.port), timeoutSeconds: CrashPlan.patienceSeconds)
  }

  /// Returns the server's status, and checks its epoch.
  private func status(over connection: WireConnection) throws -> Value {
    let status = try connection.must(WireRequest("GET", "/v1/status")).json
    ledger.check(epoch: status["epoch"].text ?? "", by: "/v1/status")
    return status
  }
}

/// The parameters of a crash test.
struct CrashPlan: Hashable, Sendable {
  /// The time limit for the server to answer, to start, or to send what it must, in seconds.
  static let patienceSeconds = 20.0

  /// The number of times that the server is ended and restarted.
  var rounds: Int
  /// The seed of the random choices: of the operations, and of when and how the server is ended. It does not determine
  /// how the threads interleave.
  var seed: UInt64
  /// The directory of all files: the schema, the store, the server's output.
  var directory: String
  /// The number of connections that write, each to objects of its own.
  var writers: Int
  /// The program whose `serve` is tested.
  var program: String

  /// The schema file, the store and the server's log in `directory`.
  var schemaFile: String { directory + "/schema.yaml" }
  var store: String { directory + "/store" }
  var logFile: String { directory + "/server.log" }
}

/// The ways in which a run of the server ends.
private enum ServerEnding: Hashable, Sendable, CaseIterable {
  /// SIGKILL at any moment.
  case killed
  /// SIGKILL when the set of the store's files has just changed: a snapshot is made, or an old one is deleted.
  case killedWhileTidying
  /// SIGTERM, and time to drain.
  case drained
  /// SIGTERM, and SIGKILL before the drain is over.
  case killedWhileDraining

  /// Returns a random ending, most often the first.
  static func random(using random: inout SplitMix64) -> ServerEnding {
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<12: .killed
    case 12..<15: .killedWhileTidying
    case 15..<18: .drained
    default: .killedWhileDraining
    }
  }
}

/// The extent that the history must have after several runs with settings of their own.
private struct HistoryWindow: Hashable, Sendable {
  /// The fewest revisions that a run since the last check had to keep; that of the last run continues to count.
  private var fewest = Int.max
  private var last = Int.max
  /// The oldest revision that the history must include.
  private var floor = 0

  /// Notes the start of a run that keeps a number of revisions.
  mutating func keep(_ revisions: Int) {
    last = revisions
    fewest = min(fewest, last)
  }

  /// Returns what is wrong with a recovered server's status; nil if nothing is.
  mutating func check(_ status: Value, revision: Int) -> String? {
    floor = max(floor, revision - fewest)
    fewest = last
    guard let oldest = status["oldest"].text.flatMap(Cursor.init) else { return "no oldest cursor" }
    guard oldest.revision > floor else { return nil }
    return "the history begins at \(oldest), not at \(floor) or before"
  }
}

/// The schema of a crash test: each entity reveals one kind of mistake.
private enum CrashSchema {
  /// Counters increase by one, which reveals skipped and repeated values. The sum of two halves stays the same, which
  /// reveals half a transaction. Items come and go, some under names that the server makes. Lists are ordered.
  static let yaml = """
    entities:
      Counter:
        keys:
          value: { type: integer, default: 0 }
          group: { toOne: Group, inverse: counters }
        display: [value]
      Group:
        keys:
          counters: { toMany: Counter, inverse: group }
          total: { type: integer, computed: counters.@sum.value }
        display: [total]
      Half:
        keys:
          value: { type: integer, default: 0 }
          sequence: { type: integer, default: 0 }
        display: [value, sequence]
      Item:
        keys:
          number: { type: integer, indexed: true }
          writer: { type: integer, indexed: true }
      List:
        keys:
          name: { type: string }
          entries: { toMany: Entry, ordered: true, inverse: list }
      Entry:
        keys:
          number: { type: integer }
          list: { toOne: List, inverse: entries }

    """
}

/// The findings of a crash test.
struct CrashReport: BenchmarkReport {
  var seed: UInt64
  var rounds = 0
  /// The number of times that the server was killed before it had recovered.
  var recoveriesKilled = 0
  var drained = 0
  var figures: PromiseLedger.Figures
  var seconds = 0.0
  /// The longest time from a start to readiness, in seconds.
  var slowestRecoverySeconds = 0.0
  var directory: String

  /// True if no promise was broken.
  var isFaultless: Bool { figures.violations.isEmpty }

  var json: Value {
    .object([
      "seed": .string(String(seed)), "rounds": .count(rounds), "recoveriesKilled": .count(recoveriesKilled),
      "drained": .count(drained), "commits": .count(figures.commits), "acknowledged": .count(figures.acknowledgements),
      "foundDone": .count(figures.found), "events": .count(figures.events), "resets": .count(figures.resets),
      "seconds": .number(seconds), "slowestRecoverySeconds": .number(slowestRecoverySeconds),
      "violations": .array(figures.violations.map { .string($0) }),
    ])
  }

  var text: String {
    let summary = String(
      format: """
        %d rounds in %.2f s, seed %llu: %d killed, %d drained, %d more killed before they had recovered; %d writes \
        acknowledged, %d found done without an answer; %d events, %d resets; slowest recovery %.2f s
        """, rounds, seconds, seed, rounds - drained, drained, recoveriesKilled, figures.acknowledgements,
      figures.found, figures.events, figures.resets, slowestRecoverySeconds)
    let verdict = isFaultless ? "no promise was broken" : "BROKEN: see above, and \(directory)"
    return (figures.violations + [summary, verdict]).joined(separator: "\n")
  }
}
