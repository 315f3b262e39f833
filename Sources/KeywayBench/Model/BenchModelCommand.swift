import ArgumentParser

/// `keyway bench model`: what the model and its observers cost, in this process, without a server.
struct BenchModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model",
    abstract: "Times sets and observed changes in this process, and how they grow with the number of members.",
    discussion: """
      First settings of an attribute that one observer follows, among few objects and among many. Then observed changes of
      collection operators and of a computed key over collections of 10, 1,000 and 100,000 members, in turn, several
      rounds; the best round counts. The ratio is of the largest to the smallest collection.
      """)

  @Option(help: "How many changes each figure is taken over.")
  var changes = 20_000

  @Option(help: "How many rounds; the best counts.")
  var rounds = 3

  @Option(help: "The sizes of the collections, separated by commas.")
  var members = "10,1000,100000"

  @Option(help: "The numbers of objects among which one is set, separated by commas.")
  var objects = "1000,1000000"

  @Flag(help: "Print the figures as one JSON object.")
  var json = false

  func validate() throws {
    guard (100...10_000_000).contains(changes) else {
      throw ValidationError("--changes is between 100 and 10,000,000")
    }
    guard (1...100).contains(rounds) else { throw ValidationError("--rounds is between 1 and 100") }
    _ = try sizes(members, "--members")
    _ = try sizes(objects, "--objects")
  }

  func run() throws {
    let report = try ModelBenchmark(
      changes: changes, rounds: rounds, memberCounts: try sizes(members, "--members"),
      objectCounts: try sizes(objects, "--objects")
    ).run()
    print(json ? report.json : report.text)
  }

  private func sizes(_ text: String, _ name: String) throws -> [Int] {
    let sizes = text.split(separator: ",").compactMap { Int($0) }
    guard !sizes.isEmpty, sizes.count == text.split(separator: ",").count,
      sizes.allSatisfy({ (1...5_000_000).contains($0) })
    else { throw ValidationError("\(name) wants numbers from 1 to 5,000,000, separated by commas") }
    return sizes
  }
}
