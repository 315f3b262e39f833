import KeyValueModel
import TestKit
import Testing

@Suite("keyway-bench slow-readers")
struct SlowReadersBenchTests {
  @Test("Those that stopped show in the end what GET shows, and the others got everything")
  func run() throws {
    let server = try ServerProcess()
    let bench = try ChildProcess.keywayBench(
      "slow-readers", "--subscribers", "100", "--slow", "10", "--values", "5", "--rate", "200", "--size",
      "20000", "--baseline", "1", "--stop", "3", "--json", "--pid", "\(server.child.pid)", "--server", server.url)
    #expect(bench.status == 0, "\(bench.errors)\n\(bench.output)")
    let figures = try Value(json: bench.output)
    #expect(figures["present"].whole == 10)
    #expect(figures["complete"].whole == 10)
    #expect(figures["faulty"].whole == 0)
    #expect(try server.hasNoStreams())
    #expect(try server.status["lagging"].whole == 0)
    #expect(try server.client.send("GET", "/metrics").text.contains("keyway_lagging_streams 0"))
  }
}
