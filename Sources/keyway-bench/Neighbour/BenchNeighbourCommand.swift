import ArgumentParser
import Foundation
import KeyValueModel
import TestKit

/// `keyway-bench neighbour`: the cost of one hostile client to the others.
struct BenchNeighbourCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "neighbour",
    abstract: "Attacks a server with one client while others read, write and listen, and measures the others.",
    discussion: """
      keyway-bench neighbour --seconds 30
      keyway-bench neighbour --attack sort --program ../before/keyway

      For each attack, a server of its own is started and filled. The others read, write and listen from 127.0.0.1:
      first in a calm phase, then while the neighbour, a process of its own, attacks from 127.0.0.2. In the end, the
      values that the listeners received are compared with GET. --list lists the attacks; without --attack all are run,
      the last one a random mixture that depends on the seed.

      Exits with 1 if a server ended, exceeded memory.bytes by more than a fifth, or does not start again with the same
      settings, or if any of the others was refused, disconnected, or received anything wrong. Latencies are printed
      and not judged.
      """)

  @Option(help: "An attack to run, by its name; may be repeated.")
  var attack: [String] = []

  @Flag(help: "List the attacks and run none.")
  var list = false

  @Option(help: ArgumentHelp("The duration of an attack.", valueName: "seconds"))
  var seconds = 10

  @Option(help: ArgumentHelp("The duration of the calm phase before it.", valueName: "seconds"))
  var calm = 5

  @Option(help: "The number of streams of the others.")
  var listeners = 900

  @Option(help: "The number of connections of the others that read.")
  var readers = 80

  @Option(help: "The number of connections of the others that write.")
  var writers = 20

  @Option(help: ArgumentHelp("The rate of reads, and that of writes.", valueName: "per second"))
  var rate = 200

  @Option(help: "The number of values that the others read, write and observe.")
  var notes = 40

  @Option(help: "The number of threads of the neighbour.")
  var neighbours = 8

  @Option(
    help: """
      The nice value of its threads. Without it, they run only while nothing else needs a processor, since a remote \
      neighbour would take none from the server; with 0 they compete with it.
      """)
  var nice: Int?

  @Option(help: "The maximum number of connections that the neighbour keeps open.")
  var held = 15_000

  @Option(help: "The number of objects for costly queries.")
  var objects = 10_000

  @Option(help: ArgumentHelp("The limit of the server's address space; 0 for none.", valueName: "KiB"))
  var ulimitV = 4 << 20

  @Option(help: "The limit of the server's descriptors.")
  var descriptors = 20_000

  @Option(
    help: ArgumentHelp(
      "The limit of the server's memory; by default memory.bytes, if that is set.", valueName: "bytes"))
  var memoryBytes: Int?

  @Option(help: ArgumentHelp("The seed of the neighbour's random choices.", valueName: "number"))
  var seed: UInt64?

  @Option(help: ArgumentHelp("The keyway to serve with; by default the one beside this program.", valueName: "path"))
  var program: String?

  @Option(help: ArgumentHelp("A further setting of the server.", valueName: "name=value"))
  var set: [String] = []

  @Option(help: ArgumentHelp("The folder of the stores during the benchmark.", valueName: "path"))
  var folder: String?

  @OptionGroup var report: ReportOptions

  /// The limit `ulimitV` in bytes; nil if there is none.
  var addressSpaceBytes: Int? { ulimitV == 0 ? nil : ulimitV << 10 }

  func validate() throws {
    try ReportOptions.check([
      ("--nice", nice ?? 0, 0...19), ("--seconds", seconds, 1...3_600), ("--calm", calm, 1...3_600),
      ("--listeners", listeners, 1...10_000),
      ("--readers", readers, 4...2_000), ("--writers", writers, 4...2_000), ("--rate", rate, 4...100_000),
      ("--notes", notes, 4...10_000), ("--neighbours", neighbours, 1...64), ("--held", held, 1...16_000),
      ("--objects", objects, 1...100_000), ("--ulimit-v", ulimitV, 0...1 << 40),
      ("--descriptors", descriptors, 1_024...1_000_000),
    ])
    guard AttackTable.named(attack) != nil else {
      throw ValidationError("--attack must be one of \(AttackTable.all.map(\.name).joined(separator: ", "))")
    }
  }

  func run() throws {
    guard !list else {
      for attack in AttackTable.all { print("\(attack.name): \(attack.summary)") }
      return
    }
    let program = program ?? KeywayServer.keyway
    let limit = try memoryBytes ?? NeighbourServer.memoryBytes(program: program, settings: set)
    let seed = seed ?? UInt64.random(in: 0..<1_000_000_000)
    var all = NeighbourReport(seed: seed, memoryBytes: limit)
    for attack in AttackTable.named(attack) ?? [] {
      FileHandle.standardError.write(Data("\(attack.name)\n".utf8))
      var row: NeighbourReport.Row
      do {
        var run = try NeighbourRun(self)
        row = try run.run(attack, seed: seed)
      } catch {
        row = NeighbourReport.Row(attack: attack.name, summary: attack.summary)
        row.failure = "\(error)"
      }
      // Another fifth for memory that does not belong to clients: the program, its threads, the allocator.
      row.residentLimit = limit.map { $0 + $0 / 5 }
      all.rows.append(row)
    }
    try report.show(all)
  }
}

/// The effects of each attack on the others.
struct NeighbourReport: BenchmarkReport {
  /// A phase with or without the attack.
  struct Phase {
    var reads = BystanderClients.Outcome()
    var writes = BystanderClients.Outcome()
    var longestHealthGap = 0.0

    /// The number of failed requests of the others.
    var failed: Int { reads.tally.failed + writes.tally.failed }

    var json: Value {
      .object([
        "reads": Self.json(reads), "writes": Self.json(writes), "healthGapMilliseconds": .rounded(longestHealthGap),
      ])
    }

    private static func json(_ outcome: BystanderClients.Outcome) -> Value {
      .object(["tally": outcome.tally.json, "microseconds": .object(outcome.latency.json)])
    }
  }

  /// One attack, on a server of its own.
  struct Row {
    var attack: String
    var summary: String
    var calm = Phase()
    var attacked = Phase()
    var neighbour = NeighbourTally()
    var largestResidentBytes = 0
    /// The number of streams of the others, of those that were closed, and of the remaining ones that do not show the
    /// same value as GET.
    var listeners = 0
    var closedListeners = 0
    var wrongListeners = 0
    /// A description of how the server ended; nil if it did not.
    var ending: String?
    /// The reason why the server did not start again with the same settings; nil if it did.
    var restartFailure: String?
    /// The reason why the attack could not be measured; nil if it was.
    var failure: String?
    /// The limit for the resident memory, in bytes; nil if the program has no such limit.
    var residentLimit: Int?

    /// The 99th percentiles under attack, as multiples of those without.
    var readRatio: Double { Self.ratio(attacked.reads, calm.reads) }
    var writeRatio: Double { Self.ratio(attacked.writes, calm.writes) }

    private static func ratio(_ attacked: BystanderClients.Outcome, _ calm: BystanderClients.Outcome) -> Double {
      Double(attacked.latency.p99) / Double(max(calm.latency.p99, 1))
    }

    /// True if the server is alive and within its memory limit, and the others were served and received everything.
    var isFaultless: Bool {
      ending == nil && restartFailure == nil && failure == nil && attacked.failed == 0 && closedListeners == 0
        && wrongListeners == 0 && largestResidentBytes <= residentLimit ?? .max
    }

    var json: Value {
      var object: JSONObject = [
        "attack": .string(attack), "calm": calm.json, "attacked": attacked.json, "readP99Ratio": .rounded(readRatio),
        "writeP99Ratio": .rounded(writeRatio), "neighbour": neighbour.json,
        "largestResidentBytes": .count(largestResidentBytes), "listeners": .count(listeners),
        "closedListeners": .count(closedListeners), "wrongListeners": .count(wrongListeners),
        "isFaultless": .bool(isFaultless),
      ]
      if let ending { object["ending"] = .string(ending) }
      if let restartFailure { object["restartFailure"] = .string(restartFailure) }
      if let failure { object["failure"] = .string(failure) }
      return .object(object)
    }
  }

  /// The limit for the latency of others' writes, in milliseconds: a greater maximum is marked.
  private static let writeMilliseconds: Int64 = 250
  /// The limit for the time without an answer of `/healthz`, in milliseconds: a longer time is marked.
  private static let healthMilliseconds = 100.0
  /// The limit for the 99th percentile, as a multiple of that without an attack: a greater one is marked.
  private static let latencyRatio = 2.0

  let seed: UInt64
  let memoryBytes: Int?
  var rows: [Row] = []

  var isFaultless: Bool { rows.allSatisfy(\.isFaultless) }

  var json: Value {
    var object: JSONObject = ["seed": .string("\(seed)"), "attacks": .array(rows.map(\.json))]
    if let memoryBytes { object["memoryBytes"] = .count(memoryBytes) }
    return .object(object)
  }

  var text: String {
    let memory = memoryBytes.map { "memory.bytes \($0 >> 20) MiB" } ?? "no memory.bytes"
    let faulty = rows.filter { !$0.isFaultless }.map(\.attack)
    return
      (["seed \(seed), \(memory); '!' marks figures over their limits"] + rows.map(Self.text) + [
        faulty.isEmpty ? "no promise was broken" : "broken by: \(faulty.joined(separator: ", "))"
      ]).joined(separator: "\n")
  }

  /// Returns the lines of one attack.
  private static func text(_ row: Row) -> String {
    if let failure = row.failure { return "\(row.attack): not measured: \(failure)" }
    var lines = ["\(row.attack): \(row.summary)"]
    for (name, calm, attacked, ratio) in [
      ("reads", row.calm.reads, row.attacked.reads, row.readRatio),
      ("writes", row.calm.writes, row.attacked.writes, row.writeRatio),
    ] {
      lines.append(
        String(
          format: "  %@ µs: p50 %d -> %d  p99 %d -> %d (%.1f times%@)  failed: %d of %d", name, Int(calm.latency.p50),
          Int(attacked.latency.p50), Int(calm.latency.p99), Int(attacked.latency.p99), ratio,
          ratio > latencyRatio ? "!" : "", attacked.tally.failed, attacked.tally.failed + attacked.tally.answered))
    }
    lines.append(
      String(
        format: "  /healthz silent: %.0f -> %.0f ms%@; resident: %d MiB%@", row.calm.longestHealthGap,
        row.attacked.longestHealthGap, row.attacked.longestHealthGap > healthMilliseconds ? "!" : "",
        row.largestResidentBytes >> 20, row.largestResidentBytes > row.residentLimit ?? .max ? "!" : ""))
    let longest = row.attacked.writes.latency.max / 1_000
    let mark = longest > writeMilliseconds ? "!" : ""
    lines.append("  longest write: \(row.calm.writes.latency.max / 1_000) -> \(longest) ms\(mark)")
    let tally = row.neighbour
    lines.append(
      "  neighbour: \(tally.answered) answered, \(tally.refused) refused, \(tally.other) others, \(tally.cut) cut; "
        + "listeners: \(row.listeners), closed \(row.closedListeners), wrong \(row.wrongListeners)")
    if let ending = row.ending { lines.append("  ! the server failed: \(ending)") }
    if let failure = row.restartFailure { lines.append("  ! the server did not restart: \(failure)") }
    return lines.joined(separator: "\n")
  }
}
