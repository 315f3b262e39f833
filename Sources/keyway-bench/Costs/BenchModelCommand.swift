import ArgumentParser

/// `keyway-bench model`: what the model and its observers cost, in this process, without a server.
struct BenchModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model",
    abstract: "Times sets and observed changes in this process, and how they grow with the number of members.",
    discussion: """
      First settings of an attribute that one observer follows, among few objects and among many. Then observed changes
      of collection operators and of a computed key over collections of 10, 1,000 and 100,000 members, in turn, several
      rounds; the best round counts. The ratio is of the largest to the smallest collection.
      """)

  @Option(help: "How many changes each figure is taken over.")
  var changes = 20_000

  @Option(help: "How many rounds; the best counts.")
  var rounds = 3

  @Option(help: "The sizes of the collections, separated by commas.")
  var members = NumberList(10, 1000, 100_000)

  @Option(help: "The numbers of objects among which one is set, separated by commas.")
  var objects = NumberList(1000, 1_000_000)

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([("--changes", changes, 100...10_000_000), ("--rounds", rounds, 1...100)])
    try members.check("--members", 1...5_000_000)
    try objects.check("--objects", 1...5_000_000)
  }

  func run() throws {
    try report.show(
      try ModelCosts(
        changes: changes, rounds: rounds, memberCounts: members.numbers, objectCounts: objects.numbers
      ).report())
  }
}
