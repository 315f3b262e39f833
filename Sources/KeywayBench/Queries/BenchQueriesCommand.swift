import ArgumentParser

/// `keyway bench queries`: what live queries cost a commit, in this process, without a server.
struct BenchQueriesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queries",
    abstract: "Times commits with live queries in this process, and how they grow with rows and with queries.",
    discussion: """
      First commits that move one row each, over results of 10, 1,000 and 100,000 rows: ordered by a key, and filtered and
      ordered through a relationship. Then commits beside 1 and 10,000 queries that they do not touch, and commits that 1
      and 1,000 streams of one query are told, until their bytes are handed to the threads of the sockets. Several rounds;
      the best counts. Beside each figure stands what the same commit costs without queries, which is not subtracted. The
      ratio is of the largest number to the smallest.
      """)

  @Option(help: "How many commits each figure is taken over.")
  var commits = 10_000

  @Option(help: "How many rounds; the best counts.")
  var rounds = 3

  @Option(help: "The numbers of rows, separated by commas.")
  var rows = "10,1000,100000"

  @Option(help: "The numbers of queries that are not touched, separated by commas.")
  var queries = "1,10000"

  @Option(help: "The numbers of streams of one query, separated by commas.")
  var watchers = "1,1000"

  @Flag(help: "Print the figures as one JSON object.")
  var json = false

  func validate() throws {
    guard (100...10_000_000).contains(commits) else {
      throw ValidationError("--commits is between 100 and 10,000,000")
    }
    guard (1...100).contains(rounds) else { throw ValidationError("--rounds is between 1 and 100") }
    _ = try sizes(rows, "--rows", from: 10)
    _ = try sizes(queries, "--queries", from: 1)
    _ = try sizes(watchers, "--watchers", from: 1)
  }

  func run() throws {
    let report = try QueryBenchmark(
      commits: commits, rounds: rounds, rowCounts: try sizes(rows, "--rows", from: 10),
      queryCounts: try sizes(queries, "--queries", from: 1),
      watcherCounts: try sizes(watchers, "--watchers", from: 1)
    ).run()
    print(json ? report.json : report.text)
  }

  private func sizes(_ text: String, _ name: String, from least: Int) throws -> [Int] {
    let sizes = text.split(separator: ",").compactMap { Int($0) }
    guard !sizes.isEmpty, sizes.count == text.split(separator: ",").count,
      sizes.allSatisfy({ (least...1_000_000).contains($0) })
    else { throw ValidationError("\(name) wants numbers from \(least) to 1,000,000, separated by commas") }
    return sizes
  }
}
