import Glibc
import KeyValueModel
import TestKit

/// One benchmark of objects that end by themselves.
struct LeasesRun {
  /// How many objects are made in one transaction.
  private static let objectsPerTransaction = 1000
  /// How many objects the other writers set.
  private static let otherCount = 100
  /// How long a lease lasts that does not end meanwhile.
  private static let longSeconds = 86_400
  /// How long after they were made the first leases end.
  private static let leadSeconds = 3
  /// How long after its time a lease may end.
  private static let endingSeconds = 30.0
  private static let responseSeconds = 30.0
  private static let entity = "Airport"
  private static let key = "city"
  /// What an object is made of.
  private static let value = #"{"iata":"AAA","name":"","city":""}"#

  private let options: BenchLeasesCommand
  private let address: SocketAddress
  private let connection: WireConnection

  /// A benchmark of the server at this address.
  init(_ options: BenchLeasesCommand, _ address: SocketAddress) throws {
    (self.options, self.address) = (options, address)
    connection = try WireConnection(address, timeoutSeconds: Self.responseSeconds)
  }

  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless.
  func run() throws -> LeasesReport {
    var report = LeasesReport(leases: options.leases, due: options.endingCount)
    try make(0..<Self.otherCount, of: "other") { _ in nil }
    report.phases.append(try phase("alone"))
    let start = MonotonicClock.now()
    let lasting = options.leases - options.endingCount
    try make(0..<lasting, of: "lasting") { _ in Self.longSeconds }
    report.makingSeconds = MonotonicClock.seconds(since: start)
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

  /// Makes objects, each with the lifetime in seconds that it is to have.
  private func make(_ numbers: Range<Int>, of kind: String, lifetime: (Int) -> Int?) throws {
    for first in stride(from: numbers.lowerBound, to: numbers.upperBound, by: Self.objectsPerTransaction) {
      let operations = (first..<min(first + Self.objectsPerTransaction, numbers.upperBound)).map { number in
        let lifetime = lifetime(number).map { #","lifetime":\#($0)"# } ?? ""
        return #"{"op":"create","object":"\#(Self.name(number, of: kind))","value":\#(Self.value)\#(lifetime)}"#
      }
      try connection.must(
        WireRequest("POST", "/v1/transactions", body: #"{"operations":[\#(operations.joined(separator: ","))]}"#))
    }
  }

  /// How many objects there are.
  private func count() throws -> Int {
    let response = try connection.must(WireRequest("GET", "/v1/objects/\(Self.entity)?limit=1&keys=\(Self.key)"))
    guard let count = response.json["count"].whole else { throw LoopbackError("a fetch without a count") }
    return count
  }

  /// Sets the other objects for a while, and renews the first leases beside it, in a random order.
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
    let start = MonotonicClock.now()
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
      phase.cores = (after.cpuSeconds - before.cpuSeconds) / MonotonicClock.seconds(since: start)
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
