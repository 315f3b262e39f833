import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("keyway-bench durable")
struct DurableBenchTests {
  /// A directory of the test's own, gone with what `body` left in it.
  private func inDirectory(_ body: (_ path: String) throws -> Void) throws {
    let directory = try ScratchDirectory()
    try body(directory.path)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
  }

  @Test("measures Keyway alone, what it writes, what it reads and both at once, and leaves nothing behind")
  func keywayAlone() throws {
    try inDirectory { path in
      let bench = try ChildProcess.keywayBench(
        "durable", "--peers", "keyway", "--rounds", "1", "--seconds", "0.3", "--connections", "4",
        "--readers", "4", "--writers", "2", "--store", "memory", "--schema", PackageFolder.schema, "--directory", path,
        "--json")
      #expect(bench.status == 0, "\(bench.errors)\n\(bench.output)")
      let figures = try Value(json: bench.output)
      for name in ["keywayWrites4", "keywayWrites1", "reads", "readsWhileWriting", "writesWhileReading"] {
        #expect(figures[name]["latencyMicroseconds"]["p50"].whole != nil, "\(name) is missing in \(bench.output)")
      }
    }
  }

  @Test("says why it cannot run")
  func failing() throws {
    try inDirectory { path in
      let bench = try ChildProcess.keywayBench(
        "durable", "--peers", "keyway", "--schema", "/there/is/none.yaml", "--store", "memory",
        "--directory", path)
      #expect(bench.status != 0)
      #expect(bench.errors.contains("keyway has ended") && bench.errors.contains("none.yaml"))
    }
  }

  @Test("ends its servers and removes their data when it is interrupted")
  func interrupted() throws {
    try inDirectory { path in
      let bench = try ChildProcess.start(
        PackageFolder.keywayBench,
        [
          "durable", "--peers", "keyway", "--rounds", "100", "--seconds", "60", "--store", "memory",
          "--schema", PackageFolder.schema, "--directory", path,
        ])
      #expect(try Deadline().awaits { try !FileManager.default.contentsOfDirectory(atPath: path).isEmpty })
      bench.send(SIGINT)
      #expect(try bench.exitStatus() == 0)
    }
  }
}
