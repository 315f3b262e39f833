import ArgumentParser
import KeyValueModel

/// What a benchmark found.
protocol BenchmarkReport {
  /// The figures for a person, one line or more.
  var text: String { get }
  /// The figures for a program: one JSON object.
  var json: Value { get }
  /// Whether every promise that the benchmark checks was kept. Figures are never judged.
  var isFaultless: Bool { get }
}

extension BenchmarkReport {
  var isFaultless: Bool { true }
}

/// How a benchmark prints its report.
struct ReportOptions: ParsableArguments {
  @Flag(help: "Print the figures as one JSON object.")
  var json = false

  /// Prints a report; ends the command with exit status 1 where a promise was broken.
  func show(_ report: some BenchmarkReport) throws {
    print(json ? report.json.json : report.text)
    guard report.isFaultless else { throw ExitCode.failure }
  }

  /// Throws for the first option whose value is out of its range.
  static func check(_ options: [(name: String, value: Int, range: ClosedRange<Int>)]) throws {
    for (name, value, range) in options where !range.contains(value) {
      throw ValidationError("\(name) is between \(range.lowerBound) and \(range.upperBound)")
    }
  }
}

extension Value {
  /// A count as JSON.
  static func count(_ number: some BinaryInteger) -> Value { .integer(Int64(number)) }

  /// A figure as JSON, to thousandths.
  static func rounded(_ number: Double) -> Value { .number((number * 1000).rounded() / 1000) }
}

extension Collection where Element: Comparable {
  /// The middle element in order, the upper one of two; nil of none.
  var median: Element? { isEmpty ? nil : sorted()[count / 2] }
}
