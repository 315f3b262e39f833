import DequeModule

/// The order in which the queries that a commit touches are evaluated, if it may not be possible to evaluate all: next
/// is always a query of a payer that has spent least so far. The queries that remain in the end are those of the
/// clients with the greatest demand.
///
/// Payers are in buckets by what they have spent, so that finding the next one costs O(1) however many there are.
struct QueryTurns {
  private static let bucketCount = 1024

  private var buckets: [Deque<QueryPayer>]
  private var lowest = 0
  /// The range of costs that one bucket covers.
  private let step: Int
  private var waiting: [QueryPayer: Deque<Int>] = [:]
  private var spent: [QueryPayer: Int]
  private var isDone: Set<Int> = []
  private var current: QueryPayer?

  /// Creates the order of the queries or observations with these numbers, each of which has payers, within a budget.
  /// `spent` has what payers have spent before.
  init(
    _ numbers: some Sequence<Int>, budget: Int, spent: [QueryPayer: Int] = [:], payers: (Int) -> [QueryPayer]
  ) {
    step = max(1, budget / Self.bucketCount)
    self.spent = spent
    buckets = [Deque<QueryPayer>](repeating: [], count: Self.bucketCount)
    for number in numbers {
      for payer in payers(number) {
        if waiting[payer] == nil { buckets[bucket(of: payer)].append(payer) }
        waiting[payer, default: []].append(number)
      }
    }
  }

  /// Returns the number of the next query; nil once there is none.
  mutating func next() -> Int? {
    while lowest < buckets.count {
      guard let payer = buckets[lowest].popFirst() else {
        lowest += 1
        continue
      }
      let bucket = bucket(of: payer)
      if bucket > lowest {
        buckets[bucket].append(payer)
        continue
      }
      while let number = waiting[payer]?.popFirst() {
        guard isDone.insert(number).inserted else { continue }
        current = payer
        return number
      }
    }
    return nil
  }

  /// Charges the cost of the current query, which its payers share.
  mutating func spend(_ cost: Int, by payers: [QueryPayer]) {
    for payer in payers { spent[payer, default: 0] += max(1, cost / payers.count) }
    if let current { buckets[max(lowest, bucket(of: current))].append(current) }
  }

  private func bucket(of payer: QueryPayer) -> Int { min((spent[payer] ?? 0) / step, buckets.count - 1) }
}

/// A client that pays for the evaluation of live queries and observations, identified by bits that distinguish it from
/// others.
package struct QueryPayer: Hashable, Sendable {
  private let high: UInt64
  private let low: UInt64

  /// Creates the client of these bits.
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
