import ArgumentParser
import CommandSupport
import Histogram
import KeyValueModel
import TestKit

/// The program that measures `keyway`, attacks it and kills it. It is not part of the server or its clients.
@main struct KeywayBench: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keyway-bench",
    abstract: "Measures a running server, or the model in this process.",
    subcommands: [
      BenchFanoutCommand.self, BenchSlowReadersCommand.self, BenchReconnectCommand.self, BenchSpreadCommand.self,
      BenchModelCommand.self, BenchQueriesCommand.self, BenchLeasesCommand.self, BenchDurableCommand.self,
      BenchRequestsCommand.self, BenchRecoveryCommand.self, BenchCrashCommand.self, BenchNeighbourCommand.self,
      BenchAttackCommand.self,
    ])
}

/// The options for printing the report of a benchmark.
struct ReportOptions: ParsableArguments {
  @Flag(help: "Print the figures as one JSON object.")
  var json = false

  /// Prints a report; exits with status 1 if a promise was broken.
  func show(_ report: some BenchmarkReport) throws {
    print(json ? report.json.json : report.text)
    guard report.isFaultless else { throw ExitCode.failure }
  }

  /// Throws for the first option whose value is out of range.
  static func check(_ options: [(name: String, value: Int, range: ClosedRange<Int>)]) throws {
    for (name, value, range) in options where !range.contains(value) {
      throw ValidationError("\(name) must be between \(range.lowerBound) and \(range.upperBound)")
    }
  }
}

/// The findings of a benchmark.
protocol BenchmarkReport {
  /// The figures for people, one line or more.
  var text: String { get }
  /// The figures for programs: one JSON object.
  var json: Value { get }
  /// True if every promise that the benchmark checks was kept. Figures are not judged.
  var isFaultless: Bool { get }
}

extension BenchmarkReport {
  var isFaultless: Bool { true }
}

/// Percentiles of times, in microseconds.
struct Latency: Hashable, Sendable {
  var p50: Int64 = 0
  var p90: Int64 = 0
  var p99: Int64 = 0
  var max: Int64 = 0

  /// Returns an empty histogram for `init(_:)`: up to ten minutes, with three significant digits.
  static func histogram() -> Histogram<UInt32> {
    Histogram(lowestDiscernibleValue: 1, highestTrackableValue: 600_000_000, numberOfSignificantValueDigits: .three)
  }

  /// Creates percentiles without measurements, all 0.
  init() {}

  /// Creates the percentiles of a histogram.
  init(_ histogram: Histogram<UInt32>) {
    guard histogram.totalCount > 0 else { return }
    p50 = Int64(histogram.valueAtPercentile(50))
    p90 = Int64(histogram.valueAtPercentile(90))
    p99 = Int64(histogram.valueAtPercentile(99))
    max = Int64(histogram.max)
  }

  /// All percentiles as a JSON object.
  var json: JSONObject {
    ["p50": .integer(p50), "p90": .integer(p90), "p99": .integer(p99), "max": .integer(max)]
  }
}

extension ClientOptions {
  /// The server's address, with the token that every request of the benchmark includes.
  var socketAddress: SocketAddress {
    get throws {
      var result = try SocketAddress(server: address)
      result.token = try bearerToken()
      return result
    }
  }
}

extension Value {
  /// Returns a count as JSON.
  static func count(_ number: some BinaryInteger) -> Value { .integer(Int64(number)) }

  /// Returns a figure as JSON, rounded to thousandths.
  static func rounded(_ number: Double) -> Value { .number((number * 1000).rounded() / 1000) }
}

extension Collection where Element: Comparable {
  /// The middle element in sorted order, the upper one of two; nil if there are no elements.
  var median: Element? { isEmpty ? nil : sorted()[count / 2] }
}
