import KeywayServer

/// The table of Metrics.md, written from that of the metrics.
enum MetricsReference {
  /// The text of the page with its table as the metrics are.
  static func metrics(in page: String) -> String {
    let rows = Metric.allCases.map { metric in
      let labels = metric.labels.map { "`\($0)`" }.joined(separator: " ")
      return "| `\(metric.rawValue)` | \(metric.kind.rawValue) | \(labels) | \(metric.help) |"
    }
    return page.replacingTable(
      withHeader: "| metric |", by: ["| metric | type | labels | meaning |", "|---|---|---|---|"] + rows)
  }
}
