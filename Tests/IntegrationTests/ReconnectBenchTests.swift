import KeyValueModel
import TestKit
import Testing

@Suite("keyway-bench reconnect")
struct ReconnectBenchTests {
  @Test("Everybody who comes back at once is told what he missed, once and in order, while others write")
  func close() throws {
    let server = try ServerProcess()
    let bench = try ChildProcess.keywayBench(
      "reconnect", "--subscribers", "200", "--objects", "50", "--behind", "60", "--missed", "3", "--rate",
      "100", "--baseline", "1", "--json", "--server", server.url)
    #expect(bench.status == 0, "\(bench.errors)\n\(bench.output)")
    let figures = try Value(json: bench.output)
    #expect(figures["exact"].whole == 200)
    #expect(figures["missedEvents"].whole == 200 * 3)
    #expect(figures["late"].whole == 0)
    #expect(figures["closed"].whole == 0)
    #expect(try server.hasNoStreams())
  }
}
