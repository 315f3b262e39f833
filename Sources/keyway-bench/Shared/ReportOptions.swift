import ArgumentParser
import KeyValueModel

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
