import KeyValueModel
import TestKit
import Testing

@Suite("keyway-bench fanout")
struct FanoutTests {
  @Test("2,000 subscribers get each of 50 messages once and in order, and leave nothing behind")
  func fanout() throws {
    let server = try ServerProcess()
    let bench = try ChildProcess.keywayBench(
      "fanout", "--subscribers", "2000", "--messages", "50", "--json", "--server", server.url)
    #expect(bench.status == 0, "\(bench.errors)\n\(bench.output)")
    #expect(try Value(json: bench.output) != .null)
    #expect(try server.hasNoStreams())
    #expect(try server.revision >= 51)
  }
}
