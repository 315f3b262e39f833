import ArgumentParser
import Foundation
import TestKit

/// `keyway-bench neighbour`: what one hostile client costs the others.
struct BenchNeighbourCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "neighbour",
    abstract: "Has one client do its worst while others read, write and listen, and measures the others.",
    discussion: """
      keyway-bench neighbour --seconds 30
      keyway-bench neighbour --attack sort --attack queries --program ../before/keyway

      For each attack a server of its own is started and filled; the others read, write and listen from 127.0.0.1, first
      for a calm while, then while the neighbour, a process of its own, attacks from 127.0.0.2. In the end what those
      who listen were told is compared with GET. --list names the attacks; without --attack all are run, the last a
      random mixture from the seed.

      Exits with 1 if a server ended, went over memory.bytes by more than a fifth, or does not start again with the
      same settings, or if any of the others was refused, cut off, or told anything wrong. Latencies are printed and
      not judged.
      """)

  @Option(help: "An attack to run, by its name; may be repeated.")
  var attack: [String] = []

  @Flag(help: "List the attacks and run none.")
  var list = false

  @Option(help: ArgumentHelp("How long an attack lasts.", valueName: "seconds"))
  var seconds = 10

  @Option(help: ArgumentHelp("How long the calm before it lasts.", valueName: "seconds"))
  var calm = 5

  @Option(help: "How many streams the others have.")
  var listeners = 900

  @Option(help: "How many connections of the others read.")
  var readers = 80

  @Option(help: "How many connections of the others write.")
  var writers = 20

  @Option(help: ArgumentHelp("How many reads, and how many writes.", valueName: "per second"))
  var rate = 200

  @Option(help: "How many values the others read, write and observe.")
  var notes = 40

  @Option(help: "How many threads the neighbour has.")
  var neighbours = 8

  @Option(
    help: """
      The nice value of its threads. Without it they run while nothing else wants a processor, as those of a neighbour \
      on a machine of its own take none from the server; with 0 they compete with it.
      """)
  var nice: Int?

  @Option(help: "How many connections the neighbour keeps open at most.")
  var held = 15_000

  @Option(help: "How many objects there are for costly queries.")
  var objects = 10_000

  @Option(help: ArgumentHelp("The server's bound of address space; 0 for none.", valueName: "KiB"))
  var ulimitV = 4 << 20

  @Option(help: "The server's bound of descriptors.")
  var descriptors = 20_000

  @Option(
    help: ArgumentHelp(
      "What the server may have in memory; without it memory.bytes, if that is set.", valueName: "bytes"))
  var memoryBytes: Int?

  @Option(help: ArgumentHelp("Where the neighbour's randomness begins.", valueName: "number"))
  var seed: UInt64?

  @Option(help: ArgumentHelp("The program to serve with, in the place of this one.", valueName: "path"))
  var program: String?

  @Option(help: ArgumentHelp("A further setting of the server.", valueName: "name=value"))
  var set: [String] = []

  @Option(help: ArgumentHelp("Where the stores are kept meanwhile.", valueName: "path"))
  var folder: String?

  @OptionGroup var report: ReportOptions

  /// The same bound in bytes; nil for none.
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
      throw ValidationError("--attack is one of \(AttackTable.all.map(\.name).joined(separator: ", "))")
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
      // A fifth more for what is no client's: the program, its threads, the allocator.
      row.residentLimit = limit.map { $0 + $0 / 5 }
      all.rows.append(row)
    }
    try report.show(all)
  }
}
