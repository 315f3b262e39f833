import KeyValueModel
import TestKit
import Testing

@Suite("keyway-bench leases")
struct LeasesBenchTests {
  @Test("Just the leases end that should, while others are renewed and other objects are written")
  func run() throws {
    let server = try ServerProcess()
    let bench = try ChildProcess.keywayBench(
      "leases", "--leases", "300", "--ending", "50", "--renewed", "50", "--rate", "50", "--seconds", "2",
      "--publishers", "2", "--json", "--pid", "\(server.child.pid)", "--server", server.url)
    #expect(bench.status == 0, "\(bench.errors)\n\(bench.output)")
    let figures = try Value(json: bench.output)
    #expect(figures["due"].whole == 100 && figures["ended"].whole == 100)
    let phases = figures["phases"].elements ?? []
    #expect(phases.count == 3)
    #expect(phases.allSatisfy { ($0["writes"].whole ?? 0) > 0 })
    #expect((phases.last?["renewals"].whole ?? 0) > 0)
    #expect(try server.status["streams"].whole == 0)
  }
}
