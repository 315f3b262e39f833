/// A client that pays for the evaluation of live queries and observations, named by whatever tells it from others.
package struct QueryPayer: Hashable, Sendable {
  private let high: UInt64
  private let low: UInt64

  /// The client of these bits.
  package init(_ high: UInt64, _ low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The payer of queries and observations for which no client is charged.
  static let unknown = QueryPayer(0, 0)
}

/// The live queries that one client pays for.
package struct QueryHolding: Hashable, Sendable {
  /// The number of different queries.
  package private(set) var queries = 0
  /// The number of their rows together.
  package private(set) var rows = 0

  mutating func add(queries: Int, rows: Int) {
    self.queries += queries
    self.rows += rows
  }
}
