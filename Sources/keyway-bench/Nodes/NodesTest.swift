import ArgumentParser
import Cluster
import Foundation
import Glibc
import KeyValueModel
import Support
import TestKit

/// A crash test of several nodes: rounds of writes, reads and streams that move, while nodes are killed, suspended and
/// cut off. After each round, everything that was seen is compared between clients, nodes and the journal.
final class NodesTest {
  private static let requestsOfClient = 600
  private static let readers = 2
  /// The number of answers that are lost at a time, and the pause between two of them, in microseconds.
  private static let lostAnswers = 4
  private static let lostAnswerPause: useconds_t = 150_000

  private let plan: NodesPlan
  private let promises = PromiseLedger()
  private let ledger: RegisterLedger
  private let cluster: NodeCluster
  private let clients: [RegisterClient]
  private var random: SplitMix64
  private var report: NodesReport
  /// The position up to which everything was compared.
  private var start = Cursor(epoch: "", revision: 0)
  /// The registers at that position.
  private var registers: [String: Int] = [:]
  /// The registers as shown by the last read of the last round.
  private var present: [String: Int] = [:]
  /// All values that were ever set.
  private var done: Set<Int> = []
  /// The faults of this round.
  private var faults: [NodeFault] = []
  /// The actions that undo the faults that still last.
  private var lasting: [(node: Int?, undo: () throws -> Void)] = []

  /// Creates the directory and its contents.
  init(_ plan: NodesPlan) throws {
    self.plan = plan
    try FileManager.default.createDirectory(atPath: plan.directory, withIntermediateDirectories: true)
    try RegisterSchema.yaml.write(toFile: plan.schemaFile, atomically: true, encoding: .utf8)
    random = SplitMix64(seed: plan.seed)
    let ledger = RegisterLedger(promises: promises)
    let cluster = try NodeCluster(plan, using: &random)
    clients = (0..<plan.writers + Self.readers).map { number in
      RegisterClient(
        number, writers: plan.writers, writesPercent: number < plan.writers ? 70 : 40, seed: plan.seed,
        doors: cluster.doors, ledger: ledger)
    }
    (self.ledger, self.cluster) = (ledger, cluster)
    report = NodesReport(plan: plan)
  }

  /// Runs all rounds, or up to the first in which a promise is broken or the task is cancelled.
  func run(progress: (Int) -> Void) -> NodesReport {
    let start = SystemClock.now()
    do {
      try begin()
      for round in 1...plan.rounds where promises.isFaultless && !Task.isCancelled {
        promises.begin(round: round)
        try self.round(round)
        report.rounds = round
        progress(round)
      }
      try finish()
    } catch let error as LoopbackError where error.reason == .interrupted {
      // The round under way does not count.
    } catch {
      promises.violation("\(error)")
    }
    if !promises.isFaultless { promises.violation("the faults of the round: \(faults)") }
    report.lostAnswers = cluster.lostAnswers
    report.violations = promises.figures.violations
    report.figures = ledger.figures
    report.seconds = SystemClock.seconds(since: start)
    return report
  }

  /// Starts the nodes for the first time, and creates the objects.
  private func begin() throws {
    let settings = settings()
    for node in cluster.nodes { try node.start(settings) }
    try cluster.awaitReady()
    guard let cursor = clients[0].found() else { throw LoopbackError("the objects cannot be created") }
    start = Cursor(epoch: cursor.epoch, revision: cursor.revision - 1)
    try compare(upTo: cursor, told: [])
  }

  private func round(_ number: Int) throws {
    faults = []
    let last = "last-of-\(number)"
    let streams = streams(upTo: last)
    for stream in streams { stream.start() }
    let isFinished = Locked(false)
    for client in clients { client.start(requests: Self.requestsOfClient, isFinished: isFinished) }
    try disturb()
    usleep(useconds_t.random(in: 50_000...400_000, using: &random))
    isFinished.withLock { $0 = true }
    try wait("the clients' end") { !clients.contains(where: \.isRunning) }
    try cluster.awaitReady()
    guard promises.isFaultless, let cursor = clients[0].finish(as: last) else {
      return promises.violation("the last write of the round was not done")
    }
    let isTold = Deadline(seconds: RegisterClient.patienceSeconds).awaits {
      !streams.contains(where: \.isRunning) || !promises.isFaultless
    }
    if !isTold {
      for stream in streams where stream.isRunning {
        let revision = stream.told.last?.revision ?? start.revision
        promises.violation("\(stream.name) received revisions up to \(revision), and not \(cursor.revision)")
      }
    }
    report.moves += streams.map(\.moves).reduce(0, +)
    report.events += streams.map(\.told.count).reduce(0, +)
    guard promises.isFaultless else { return }
    try compare(upTo: cursor, told: streams)
  }

  /// Returns two readers that move for each subscription, and at each node one that stays.
  private func streams(upTo last: String) -> [MovingReader] {
    let kinds = MovingReader.Subscription.allCases
    let homes: [(MovingReader.Subscription, Int?)] =
      kinds.flatMap { [($0, nil), ($0, nil)] }
      + cluster.nodes.map { node in (kinds.randomElement(using: &random) ?? .query, node.index) }
    return homes.map { subscription, home in
      MovingReader(
        subscription, at: home, of: cluster.doors, since: start, upTo: last, seed: random.next(), promises: promises)
    }
  }

  private func wait(_ what: String, until isDone: () -> Bool) throws {
    // A repeatable request is attempted for this long, and may have begun just now.
    guard Deadline(seconds: 2 * RegisterClient.patienceSeconds).awaits(pauseMicroseconds: 1000, isDone) else {
      throw LoopbackError(.timedOut, what)
    }
  }

  // MARK: Faults

  /// Causes some faults, one after the other or at the same time, and ends all of them.
  private func disturb() throws {
    for _ in 0..<Int.random(in: 1...3, using: &random) where promises.isFaultless {
      usleep(useconds_t.random(in: 10_000...200_000, using: &random))
      let fault = NodeFault.random(in: cluster, using: &random)
      try prepare(for: fault)
      faults.append(fault)
      report.faults[fault.kind, default: 0] += 1
      let undo = try apply(fault)
      lasting.append((fault.node, undo))
      let isLong = fault.outlastsTakeover
      if random.chance(70) || isLong {
        usleep(pause(fault))
        try self.undo { _ in true }
      }
    }
    usleep(useconds_t.random(in: 10_000...300_000, using: &random))
    try undo { _ in true }
  }

  /// Ends faults that would interfere with a fault: those that last at the same node, and those that keep a peer from
  /// its database during its start, since it would exit then and leave the next start to its supervisor.
  private func prepare(for fault: NodeFault) throws {
    guard fault.isOfDatabase else { return try undo { $0 == fault.node || $0 == nil } }
    try undo { _ in true }
    try cluster.awaitReady()
  }

  /// Returns the duration of a fault, in microseconds. Some cuts last longer than nodes wait for each other.
  private func pause(_ fault: NodeFault) -> useconds_t {
    if fault.outlastsTakeover { return useconds_t.random(in: 1_300_000...2_800_000, using: &random) }
    if case .cut = fault, random.chance(6) { return 4_000_000 }
    // If this is the peer that appends, another one takes over.
    if case .stopped = fault, random.chance(15) { return useconds_t.random(in: 1_200_000...2_500_000, using: &random) }
    return useconds_t.random(in: 5_000...700_000, using: &random)
  }

  private func undo(where isMeant: (Int?) -> Bool) throws {
    for fault in lasting where isMeant(fault.node) { try fault.undo() }
    lasting.removeAll { isMeant($0.node) }
  }

  /// Causes a fault, and returns the action that ends it.
  private func apply(_ fault: NodeFault) throws -> () throws -> Void {
    switch fault {
    case .killed(let index):
      let node = cluster.nodes[index]
      expect(128 + SIGKILL, try node.end(SIGKILL), of: node)
      let settings = settings()
      return { try node.start(settings) }
    case .restarted(let index):
      let node = cluster.nodes[index]
      // A node that has just been started may not handle the signal yet.
      let isNew = node.secondsSinceStart < 5
      let status = try node.end(SIGTERM)
      if !isNew || status != 128 + SIGTERM { expect(0, status, of: node) }
      let settings = settings()
      return { try node.start(settings) }
    case .stopped(let index):
      let node = cluster.nodes[index]
      node.send(SIGSTOP)
      return { node.send(SIGCONT) }
    case .cut(let index, let way, let direction, let breaking):
      let proxy = cluster.nodes[index].proxy(on: way)
      proxy.cut(direction)
      return { proxy.mend(resetting: breaking) }
    case .answerLost(let index, let ending):
      let proxy = cluster.nodes[index].proxy(on: .exit)
      loseAnswers(on: proxy, ending)
      return { proxy.loseNothing() }
    case .isolated(let index, let partition): return isolate(cluster.nodes[index], partition)
    case .databaseKilled:
      try cluster.stopDatabase()
      return { [cluster] in try cluster.startDatabase() }
    case .failedOver(let ending):
      try cluster.failOver(ending)
      return { [cluster] in try cluster.addStandby() }
    }
  }

  /// Loses the answer to the next append, or, if that only resets connections, the answers to several appends in
  /// succession.
  private func loseAnswers(on proxy: FaultyProxy, _ ending: FaultyProxy.Ending) {
    for number in 0..<(ending == .silence ? 1 : Self.lostAnswers) {
      // By then the previous append has been repeated, and answered.
      if number > 0 { usleep(Self.lostAnswerPause) }
      let lost = proxy.lossCount
      proxy.lose(.answer, of: PostgresJournal.appendMark, ending: ending)
      _ = Deadline(seconds: 0.3).awaits(pauseMicroseconds: 1000) { proxy.lossCount > lost }
    }
  }

  /// Cuts a peer off from everything but the clients, and returns the action that ends that.
  private func isolate(_ node: ClusterNode, _ partition: NodeFault.Partition) -> () -> Void {
    let (door, entrance, exit) = (node.door, node.proxy(on: .entrance), node.proxy(on: .exit))
    for direction in FaultyProxy.Direction.allCases { entrance.cut(direction) }
    if partition.isQuiet {
      door.isForRefusals = true
      // Requests under way end.
      usleep(50_000)
    }
    for direction in partition.directions { exit.cut(direction) }
    return {
      door.isForRefusals = false
      exit.mend(resetting: partition.isBreaking)
      entrance.mend(resetting: partition.isBreaking)
    }
  }

  private func expect(_ expected: Int32, _ status: Int32, of node: ClusterNode) {
    guard status != expected else { return }
    promises.violation(
      "node \(node.index) ended with status \(status), not \(expected); see \(plan.logFile(of: node.index))")
  }

  /// Returns the settings of one start: snapshots now and then, or all the time.
  private func settings() -> [String: String] {
    ["snapshot.revisions": "\([10, 60, 500, 100_000].randomElement(using: &random) ?? 500)"]
  }

  // MARK: Comparison

  /// Compares everything that was seen up to a cursor, after which no requests are sent.
  private func compare(upTo end: Cursor, told streams: [MovingReader]) throws {
    let comparison = NodesComparison(
      doors: cluster.doors, ledger: ledger, start: start, end: end)
    let objects = try comparison.objects()
    let lines = try comparison.journal()
    let record = ledger.takeRecord()
    let check = RoundCheck(of: record, lines: lines, after: start.revision, registers: registers, done: &done)
    for problem in check.problems { promises.violation(problem) }
    judge(record)
    guard promises.isFaultless else { return }
    try comparison.check(streams: streams, lines: lines, check)
    report.found += check.found.count
    let now = SystemClock.now()
    let horizon = now - min(now, 60_000_000_000)
    ledger.begin(carrying: check.stillOpen.filter { $0.invoked > horizon }, check.later)
    (start, registers, present) = (end, check.registers, objects)
  }

  /// Checks the history of each register.
  private func judge(_ record: RoundRecord) {
    for (register, history) in record.histories.sorted(by: { $0.key < $1.key }) {
      report.histories += 1
      switch Linearizability.check(history, from: present[register]) {
      case .holds: break
      case .isUndecided: report.undecided += 1
      case .isViolated(let taken, let stuck, let state):
        let words = stuck.map { "\(history[$0])" }.joined(separator: "; ")
        promises.violation(
          "\(register) has no order: after \(taken) of \(history.count) operations it is "
            + "\(state.map(String.init) ?? "absent"), and none of these could be next: \(words)")
      }
    }
  }

  /// Ends all nodes, and checks their stores.
  private func finish() throws {
    // The bytes that identify appends may have changed.
    if report.faults[NodeFault.answerLost(0, .reset).kind, default: 0] > 9, cluster.lostAnswers == 0 {
      promises.violation("no append was sent whose answer could be lost")
    }
    for node in cluster.nodes { expect(0, try node.end(SIGTERM), of: node) }
    guard plan.kind == .followers else { return }
    for node in cluster.nodes {
      let verify = try ChildProcess(plan.program, ["store", "verify", "--store", plan.store(of: node.index)])
      guard try verify.exitStatus(within: 60) == 0 else {
        promises.violation("store verify of node \(node.index): \(verify.output)\(verify.errors)")
        continue
      }
    }
  }
}

/// The parameters of a crash test of several nodes.
struct NodesPlan: Hashable, Sendable {
  /// The relation between the nodes.
  enum Kind: String, Hashable, Sendable, CaseIterable, ExpressibleByArgument {
    /// The first takes the writes, and the others follow it or one another.
    case followers
    /// All take writes, over one PostgreSQL of the test's own.
    case peers
  }

  var kind: Kind
  /// The number of nodes.
  var nodes: Int
  /// The number of rounds of load with faults, each followed by a comparison.
  var rounds: Int
  /// The seed of the random choices: of the requests, of the faults, and of their times. It does not determine how the
  /// processes interleave.
  var seed: UInt64
  /// The directory of all files: the schema, the stores, the nodes' output.
  var directory: String
  /// The number of clients that write.
  var writers: Int
  /// The program whose `serve` is tested.
  var program: String

  /// The schema file in `directory`.
  var schemaFile: String { directory + "/schema.yaml" }

  /// Returns the directory of a node's store.
  func store(of node: Int) -> String { directory + "/store-\(node)" }

  /// Returns the log file of a node.
  func logFile(of node: Int) -> String { directory + "/node-\(node).log" }
}

/// The findings of a crash test of several nodes.
struct NodesReport: BenchmarkReport {
  var plan: NodesPlan
  var rounds = 0
  /// The number of faults, by kind.
  var faults: [String: Int] = [:]
  /// The number of lost answers of the database to appends.
  var lostAnswers = 0
  var figures = RegisterLedger.Figures()
  /// The number of writes without an answer that were found done.
  var found = 0
  var events = 0
  /// The number of times that a stream was reopened.
  var moves = 0
  /// The number of histories of one register that were checked, and of those that the checker gave up on.
  var histories = 0
  var undecided = 0
  var seconds = 0.0
  var violations: [String] = []

  var isFaultless: Bool { violations.isEmpty }

  var json: Value {
    .object([
      "kind": .string(plan.kind.rawValue), "nodes": .count(plan.nodes), "seed": .string(String(plan.seed)),
      "rounds": .count(rounds), "faults": .count(faults.values.reduce(0, +)), "killed": .count(faults["killed"] ?? 0),
      "restarted": .count(faults["restarted"] ?? 0), "stopped": .count(faults["stopped"] ?? 0),
      "cut": .count(faults["cut"] ?? 0), "databaseKilled": .count(faults["databaseKilled"] ?? 0),
      "failedOver": .count(faults["failedOver"] ?? 0), "isolated": .count(faults["isolated"] ?? 0),
      "lostAnswers": .count(lostAnswers),
      "acknowledged": .count(figures.acknowledged), "refused": .count(figures.refused),
      "unknown": .count(figures.open), "foundDone": .count(found), "reads": .count(figures.reads),
      "events": .count(events), "moves": .count(moves), "histories": .count(histories),
      "undecided": .count(undecided), "seconds": .number(seconds),
      "violations": .array(violations.map { .string($0) }),
    ])
  }

  var text: String {
    let list = faults.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    let summary = String(
      format: """
        %d rounds of %d %@ in %.2f s, seed %llu; faults: %@; %d answers of a database lost; %d writes acknowledged, \
        %d refused, %d without an answer, of which %d were done; %d reads; %d events on streams opened %d times; \
        %d histories of registers judged, %d undecided
        """, rounds, plan.nodes, plan.kind.rawValue, seconds, plan.seed, list.isEmpty ? "none" : list,
      lostAnswers, figures.acknowledged, figures.refused, figures.open, found, figures.reads, events, moves, histories,
      undecided)
    let verdict = isFaultless ? "no promise was broken" : "BROKEN: see above, and \(plan.directory)"
    return (violations + [summary, verdict]).joined(separator: "\n")
  }
}
