import KeyValueModel
import TestKit
import Testing

@Suite("keyway-bench spread")
struct SpreadBenchTests {
  @Test(
    "Every subscriber receives the changes of what it observes and nothing else", arguments: ["objects", "queries"])
  func run(watch: String) throws {
    let server = try ServerProcess()
    let bench = try ChildProcess.keywayBench(
      "spread", "--watch", watch, "--subscribers", "50", "--objects", "200", "--rate", "500", "--seconds", "1",
      "--publishers", "4", "--together", "30", "--rounds", "2", "--json", "--pid", "\(server.child.pid)", "--server",
      server.url)
    #expect(bench.status == 0, "\(bench.errors)\n\(bench.output)")
    let figures = try Value(json: bench.output)
    #expect(figures["faulty"].whole == 0)
    #expect(figures["closed"].whole == 0)
    // Subscribers of objects have 50 of the 200; those of queries have them all.
    let observed = figures["observed"]
    if watch == "queries" { #expect(observed["deliveries"].whole ?? 0 > 0) }
    #expect((observed["deliveries"].whole ?? 0) <= (observed["commits"].whole ?? 0))
    #expect(figures["together"]["milliseconds"].elements?.count == 2)
    #expect(try server.hasNoStreams())
  }
}
