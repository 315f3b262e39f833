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
