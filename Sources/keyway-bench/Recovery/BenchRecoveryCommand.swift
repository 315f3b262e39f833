import ArgumentParser
import KeyValueModel

/// `keyway-bench recovery`: how long a store takes to start, and what objects and records take in memory and on disk.
struct BenchRecoveryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recovery",
    abstract: "Times the start of a store with many objects, and of one with a long journal.",
    discussion: """
      Writes two stores: one whose objects stand in a snapshot, and one with a few objects and a long journal, each
      record of which sets a key. Each is then read by a process of its own, as a server reads it when it starts; its
      memory is counted there.
      """)

  @Option(help: "How many objects the first store has.")
  var objects = 1_000_000

  @Option(help: "How many records the second one has.")
  var records = 1_000_000

  @Option(help: "Where the stores are made, and taken away again.")
  var directory = "."

  @Option(help: .hidden)
  var measure: String?

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([("--objects", objects, 1...20_000_000), ("--records", records, 1...100_000_000)])
  }

  func run() throws {
    if let measure {
      print(Value.object(try RecoveryMeasurement(store: measure).json).json)
      return
    }
    try report.show(try RecoveryBenchmark(objects: objects, records: records, directory: directory).run())
  }
}
