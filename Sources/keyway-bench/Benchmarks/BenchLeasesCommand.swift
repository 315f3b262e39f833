import ArgumentParser
import CommandSupport
import Foundation
import Glibc
import KeyValueModel
import Support
import TestKit

/// `keyway-bench leases`: the cost of expiring objects to the writers of other objects.
struct BenchLeasesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "leases",
    abstract: "Measures writers while other objects have leases, which are renewed and expire.",
    discussion: """
      keyway-bench leases --leases 1000000 --ending 1000 --pid $(pidof keyway)

      A few connections set other objects at a fixed rate: first alone, then with a number of leased objects in the
      store, and last while a number of leases are renewed and a number expire each second. At the end, the remaining
      objects are counted.

      Exits with 1 if the wrong number of leases expired. Figures are printed and not judged.
      """)

  @Option(help: "The number of objects with a lease.")
  var leases = 1_000_000

  @Option(help: ArgumentHelp("The number of leases that expire.", valueName: "per second"))
  var ending = 1000

  @Option(help: ArgumentHelp("The number of leases to renew.", valueName: "per second"))
  var renewed = 1000

  @Option(help: ArgumentHelp("The number of other objects to set.", valueName: "per second"))
  var rate = 500

  @Option(help: "The number of connections that set objects, and of further ones that renew leases.")
  var publishers = 8

  @Option(help: ArgumentHelp("The duration of each phase.", valueName: "seconds"))
  var seconds = 10

  @Option(help: "The seed of the random order of the written objects.")
  var seed: UInt64 = 1

  @Option(help: "The server's process id, to measure its memory and CPU time.")
  var pid: Int?

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  /// The total number of leases that expire.
  fileprivate var endingCount: Int { ending * seconds }

  func validate() throws {
    try ReportOptions.check([
      ("--ending", ending, 0...100_000), ("--renewed", renewed, 0...100_000), ("--rate", rate, 1...100_000),
      ("--publishers", publishers, 1...1000), ("--seconds", seconds, 1...3600),
    ])
    try ReportOptions.check([("--leases", leases, 1...10_000_000)])
    guard leases >= endingCount + publishers else {
      throw ValidationError("--leases must be at least \(endingCount + publishers)")
    }
  }

  func run() throws {
    try report.show(try LeasesRun(self, try client.socketAddress).run())
  }
}

/// One benchmark of expiring objects.
private struct LeasesRun {
  /// The number of objects created in one transaction.
  private static let objectsPerTransaction = 1000
  /// The number of objects that the other writers set.
  private static let otherCount = 100
  /// The duration of a lease that does not expire during the benchmark, in seconds.
  private static let longSeconds = 86_400
  /// The time from creation to the first expiry, in seconds.
  private static let leadSeconds = 3
  /// The maximum delay of a lease's expiry, in seconds.
  private static let endingSeconds = 30.0
  private static let responseSeconds = 30.0
  private static let entity = "Airport"
  private static let key = "city"
  /// The value of an object, as JSON.
  private static let value = #"{"iata":"AAA","name":"","city":""}"#

  private let options: BenchLeasesCommand
  private let address: SocketAddress
  private let connection: WireConnection

  /// Creates a benchmark of the server at an address.
  init(_ options: BenchLeasesCommand, _ address: SocketAddress) throws {
    (self.options, self.address) = (options, address)
    connection = try WireConnection(address, timeoutSeconds: Self.responseSeconds)
  }

  /// Runs the benchmark to its end, or until something makes its figures worthless.
  func run() throws -> LeasesReport {
    var report = LeasesReport(leases: options.leases, due: options.endingCount)
    try make(0..<Self.otherCount, of: "other") { _ in nil }
    report.phases.append(try phase("alone"))
    let start = SystemClock.now()
    let lasting = options.leases - options.endingCount
    try make(0..<lasting, of: "lasting") { _ in Self.longSeconds }
    report.makingSeconds = SystemClock.seconds(since: start)
    report.phases.append(try phase("beside the leases"))
    let before = try count()
    try make(0..<options.endingCount, of: "ending") { [ending = options.ending] in Self.leadSeconds + $0 / ending }
    report.phases.append(
      try phase("while they are renewed and end", renewing: options.renewed > 0 ? min(lasting, 100_000) : 0))
    report.residentBytes = try ProcessFigures.ifAsked(options.pid)?.residentBytes
    let deadline = Deadline(seconds: Self.endingSeconds)
    var left = try count()
    while left > before, !deadline.hasPassed {
      usleep(100_000)
      left = try count()
    }
    report.ended = before + options.endingCount - left
    return report
  }

  private static func name(_ number: Int, of kind: String) -> String { "\(entity)/\(kind)-\(number)" }

  /// Creates objects; `lifetime` returns the lifetime of each in seconds, or nil for none.
  private func make(_ numbers: Range<Int>, of kind: String, lifetime: (Int) -> Int?) throws {
    for first in stride(from: numbers.lowerBound, to: numbers.upperBound, by: Self.objectsPerTransaction) {
      let operations = (first..<min(first + Self.objectsPerTransaction, numbers.upperBound)).map { number in
        let lifetime = lifetime(number).map { #","lifetime":\#($0)"# } ?? ""
        return #"{"op":"create","object":"\#(Self.name(number, of: kind))","value":\#(Self.value)\#(lifetime)}"#
      }
      try connection.must(.transaction(operations))
    }
  }

  /// Returns the number of objects on the server.
  private func count() throws -> Int {
    let response = try connection.must(WireRequest("GET", "/v1/objects/\(Self.entity)?limit=1&keys=\(Self.key)"))
    guard let count = response.json["count"].whole else { throw LoopbackError("the response to a fetch has no count") }
    return count
  }

  /// Sets the other objects for a while, and renews the first leases at the same time, in a random order.
  private func phase(_ name: String, renewing count: Int = 0) throws -> LeasesReport.Phase {
    let writers = publishers(
      (0..<Self.otherCount).map { "/v1/objects/\(Self.name($0, of: "other"))/\(Self.key)" }, rate: options.rate)
    let renewers =
      count == 0
      ? nil
      : publishers((0..<count).map { "/v1/objects/\(Self.name($0, of: "lasting"))" }, rate: options.renewed) {
        WireRequest(
          "PATCH", $0, ["Content-Type": "application/merge-patch+json", "Keyway-Lifetime": "\(Self.longSeconds)"],
          body: #"{"\#(Self.key)":\#($1)}"#)
      }
    let before = try ProcessFigures.ifAsked(options.pid)
    let start = SystemClock.now()
    writers.start()
    renewers?.start()
    let end = Deadline(seconds: Double(options.seconds + (count > 0 ? Self.leadSeconds : 0)))
    while !end.hasPassed, try writers.isRunning(), try renewers?.isRunning() ?? true {
      usleep(20_000)
    }
    writers.stop()
    renewers?.stop()
    while try writers.isRunning() || renewers?.isRunning() == true { usleep(5_000) }
    var phase = LeasesReport.Phase(name: name)
    phase.writes = writers.outcome.writes
    phase.latency = writers.outcome.latency
    phase.renewals = renewers?.outcome.writes ?? 0
    if let before, let after = try ProcessFigures.ifAsked(options.pid) {
      phase.cores = (after.cpuSeconds - before.cpuSeconds) / SystemClock.seconds(since: start)
    }
    return phase
  }

  private func publishers(
    _ paths: [String], rate: Int,
    request: @escaping @Sendable (String, String) -> WireRequest = WireRequest.setting
  ) -> Publishers {
    Publishers(
      Publishers.Plan(
        address: address, paths: paths, request: request, seed: options.seed, connections: options.publishers,
        pace: .perSecond(rate), sizeBytes: 24, timeoutSeconds: Self.responseSeconds),
      MessageLedger(values: paths.count))
  }
}

/// The figures of a benchmark of expiring objects.
private struct LeasesReport: BenchmarkReport {
  /// The figures of the other writers in one phase.
  struct Phase {
    let name: String
    var writes = 0
    /// The times from when a write was due to its response.
    var latency = Latency()
    /// The number of leases renewed meanwhile.
    var renewals = 0
    /// The average number of cores that the server used; nil if not measured.
    var cores: Double?

    var json: Value {
      var object: JSONObject = [
        "name": .string(name), "writes": .count(writes), "latencyMicroseconds": .object(latency.json),
        "renewals": .count(renewals),
      ]
      if let cores { object["serverCores"] = .rounded(cores) }
      return .object(object)
    }

    var text: String {
      var line = "\(name): \(writes) writes; µs: p50 \(latency.p50)  p90 \(latency.p90)  p99 \(latency.p99)"
      line += "  max \(latency.max)"
      if renewals > 0 { line += "; \(renewals) leases renewed" }
      if let cores { line += String(format: "; server: %.2f cores", cores) }
      return line
    }
  }

  var leases = 0
  /// The time for creating the objects, in seconds.
  var makingSeconds = 0.0
  var phases: [Phase] = []
  /// The number of leases that should have expired, and of those that did.
  var due = 0
  var ended = 0
  /// The server's memory with all leases, in bytes; nil if not measured.
  var residentBytes: Int?

  /// Returns the p99 of a phase's writers as a multiple of the p99 in the first phase.
  private func ratio(_ phase: Phase) -> Double {
    Double(phase.latency.p99) / Double(max(phases.first?.latency.p99 ?? 0, 1))
  }

  /// True if exactly the leases expired that should have.
  var isFaultless: Bool { ended == due }

  var json: Value {
    var object: JSONObject = [
      "leases": .count(leases), "makingSeconds": .rounded(makingSeconds), "phases": .array(phases.map(\.json)),
      "p99Ratios": .array(phases.map { .rounded(ratio($0)) }), "due": .count(due), "ended": .count(ended),
    ]
    if let residentBytes { object["residentBytes"] = .count(residentBytes) }
    return .object(object)
  }

  var text: String {
    var lines = phases.map(\.text)
    var made = String(format: "%d leases, made in %.1f s", leases, makingSeconds)
    if let residentBytes { made += String(format: "; server: %.0f MiB", Double(residentBytes) / 1_048_576) }
    lines.insert(made, at: min(1, lines.count))
    for phase in phases.dropFirst() {
      lines.append(String(format: "p99 of the writers, %@: %.2f times", phase.name, ratio(phase)))
    }
    lines.append("ended \(ended) of \(due)")
    return lines.joined(separator: "\n")
  }
}
