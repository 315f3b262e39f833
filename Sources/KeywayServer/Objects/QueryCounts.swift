/// How many rows there are, as answers and events say it.
struct QueryCounts {
  /// Those of the window; of a fetch all.
  let count: Int
  /// All that match.
  let total: Int
  /// The objects for which the filter fails.
  let failed: Int

  /// Appends `,"count":…,"total":…`, and `,"failed":…` where that is not 0.
  func append(to bytes: inout [UInt8]) {
    bytes.append(contentsOf: ",\"count\":\(count),\"total\":\(total)".utf8)
    if failed > 0 { bytes.append(contentsOf: ",\"failed\":\(failed)".utf8) }
  }
}
