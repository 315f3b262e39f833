import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("The program keyway-bench", .timeLimit(.minutes(60)))
struct BenchmarkTests {
  // MARK: durable

  /// Runs `body` in a directory of the test's own, and expects that it leaves nothing there.
  private func inDirectory(_ body: (_ path: String) throws -> Void) throws {
    let directory = try ScratchDirectory()
    try body(directory.path)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
  }

  @Test("durable measures Keyway alone, what it writes, what it reads and both at once, and leaves nothing behind")
  func durableAlone() throws {
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

  @Test("durable says why it cannot run")
  func durableFailing() throws {
    try inDirectory { path in
      let bench = try ChildProcess.keywayBench(
        "durable", "--peers", "keyway", "--schema", "/there/is/none.yaml", "--store", "memory",
        "--directory", path)
      #expect(bench.status != 0)
      #expect(bench.errors.contains("keyway has ended") && bench.errors.contains("none.yaml"))
    }
  }

  @Test("durable ends its servers and removes their data when it is interrupted")
  func durableInterrupted() throws {
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

  // MARK: fanout

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

  // MARK: leases

  @Test("Just the leases end that should, while others are renewed and other objects are written")
  func leases() throws {
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

  // MARK: neighbour

  @Test("neighbour reports of each attack what the others noticed, and that they were served and told everything")
  func neighbourReport() throws {
    let bench = try ChildProcess.keywayBench(
      "neighbour", "--attack", "pages", "--attack", "noise", "--seconds", "1", "--calm", "1", "--listeners",
      "20", "--readers", "4", "--writers", "4", "--rate", "20", "--notes", "4", "--objects", "50", "--neighbours", "2",
      "--held", "50", "--seed", "7", "--json")
    let report = try Value(json: bench.output)
    #expect(report["seed"].text == "7")
    let attacks = report["attacks"].elements ?? []
    #expect(attacks.map { $0["attack"].text } == ["pages", "noise"], "\(bench.output) \(bench.errors)")
    for attack in attacks {
      #expect(attack["isFaultless"] == .bool(true), "\(attack.json)")
      #expect(attack["listeners"].whole == 20 && attack["failure"] == .null)
      #expect((attack["attacked"]["reads"]["tally"]["answered"].whole ?? 0) > 0)
      #expect((attack["attacked"]["writes"]["tally"]["answered"].whole ?? 0) > 0)
      #expect((attack["largestResidentBytes"].whole ?? 0) > 0)
    }
    #expect((attacks.first?["neighbour"]["answered"].whole ?? 0) > 0)
    #expect(bench.status == 0)
  }

  @Test("neighbour lists what it can do, and refuses what is no attack")
  func neighbourList() throws {
    let list = try ChildProcess.keywayBench("neighbour", "--list")
    let names = list.output.split(separator: "\n").compactMap { $0.split(separator: ":").first.map(String.init) }
    #expect(names.count > 15 && Set(names).count == names.count && names.last == "mixture")
    let unknown = try ChildProcess.keywayBench("neighbour", "--attack", "kindness")
    #expect(unknown.status != 0 && unknown.errors.contains("mixture"))
  }

  // MARK: reconnect

  @Test("Everybody who comes back at once is told what he missed, once and in order, while others write")
  func reconnect() throws {
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

  // MARK: spread

  @Test(
    "Every subscriber receives the changes of what it observes and nothing else", arguments: ["objects", "queries"])
  func spread(watch: String) throws {
    let server = try ServerProcess()
    let bench = try ChildProcess.keywayBench(
      "spread", "--watch", watch, "--subscribers", "50", "--objects", "200", "--rate", "500", "--seconds", "1",
      "--publishers", "4", "--together", "30", "--rounds", "2", "--json", "--pid", "\(server.child.pid)", "--server",
      server.url)
    #expect(bench.status == 0, "\(bench.errors)\n\(bench.output)")
    let figures = try Value(json: bench.output)
    #expect(figures["faulty"].whole == 0)
    #expect(figures["closed"].whole == 0)
    // Subscribers of objects get 50 of the 200; those of queries get all.
    let observed = figures["observed"]
    if watch == "queries" { #expect(observed["deliveries"].whole ?? 0 > 0) }
    #expect((observed["deliveries"].whole ?? 0) <= (observed["commits"].whole ?? 0))
    #expect(figures["together"]["milliseconds"].elements?.count == 2)
    #expect(try server.hasNoStreams())
  }

  // MARK: slow-readers

  @Test("Readers that stopped finally show the same as GET, and the others got everything")
  func slowReaders() throws {
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
