import ArgumentParser

/// `keyway-bench queries`: what live queries cost a commit, in this process, without a server.
struct BenchQueriesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queries",
    abstract: "Times commits with live queries in this process, and how they grow with rows and with queries.",
    discussion: """
      First commits that move one row each, over results of 10, 1,000 and 100,000 rows: ordered by a key, filtered and
      ordered through a relationship, and from section to section with aggregates of each. Then commits beside 1 and
      10,000 queries that they do not touch, and commits that concern 1 and 1,000 streams of one query, until their
      bytes are handed to the threads of the sockets. Several rounds; the best counts. Beside each figure stands what
      the same commit costs without queries, which is not subtracted. The ratio is of the largest number to the
      smallest.
      """)

  @Option(help: "How many commits each figure is taken over.")
  var commits = 10_000

  @Option(help: "How many rounds; the best counts.")
  var rounds = 3

  @Option(help: "The numbers of rows, separated by commas.")
  var rows = NumberList(10, 1000, 100_000)

  @Option(help: "The numbers of queries that are not touched, separated by commas.")
  var queries = NumberList(1, 10_000)

  @Option(help: "The numbers of streams of one query, separated by commas.")
  var watchers = NumberList(1, 1000)

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([("--commits", commits, 100...10_000_000), ("--rounds", rounds, 1...100)])
    try rows.check("--rows", 10...1_000_000)
    try queries.check("--queries", 1...1_000_000)
    try watchers.check("--watchers", 1...1_000_000)
  }

  func run() throws {
    try report.show(
      try QueryCosts(
        commits: commits, rounds: rounds, rowCounts: rows.numbers, queryCounts: queries.numbers,
        streamCounts: watchers.numbers
      ).report())
  }
}
