import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

@Suite("Counts of a client's live queries")
struct QueryHoldingTests {
  /// The watched queries and their payers, counted from scratch each time.
  private struct Oracle {
    var watched: [QueryObserver: Query] = [:]
    var payments: [ObserverID: [QueryPayer: Int]] = [:]

    func holding(of payer: QueryPayer, _ live: LiveQueries) -> (queries: Int, rows: Int) {
      let own = Set(watched.filter { payments[$0.key.id]?[payer] ?? 0 > 0 }.values)
      // An object for which the filter fails counts as a row.
      let rows = own.compactMap { live.result(of: $0) }.reduce(0) { $0 + $1.rowCount + $1.failed }
      return (own.count, rows)
    }
  }

  @Test("Each client's queries and their present rows are counted once, with any watchers", arguments: 0..<10)
  func random(_ round: UInt64) throws {
    var random = SplitMix64(seed: seed, part: round)
    var fixture = try QueryFixture(QueryFixture.staff, "create Employee/1 {}", "create Employee/2 {}")
    let queries = try (0..<4).map { try fixture.query("Employee", filter: "salary > \($0 * 10)", keys: ["name"]) }
    let payers = (1...3).map { QueryPayer(7, UInt64($0)) }
    let observers = (1...4).map { ObserverID(UInt64($0)) }
    var oracle = Oracle()
    for step in 0..<400 {
      let id = observers.randomElement(using: &random) ?? ObserverID(1)
      let payer = payers.randomElement(using: &random) ?? QueryPayer(7, 1)
      let observer = QueryObserver(id: id, cell: [nil, "a", "b"].randomElement(using: &random) ?? nil)
      switch Int.random(in: 0..<6, using: &random) {
      case 0, 1:
        let query = queries.randomElement(using: &random) ?? queries[0]
        if fixture.live.result(of: query) == nil {
          // A cell's former query is removed first, as streams do it.
          fixture.live.remove(observer)
          fixture.live.add(try LiveQuery(query, in: fixture.model.state, costLimit: 1_000_000), observer: observer)
        } else {
          fixture.live.watch(query, observer)
        }
        oracle.watched[observer] = query
      case 2:
        fixture.live.remove(observer)
        oracle.watched[observer] = nil
      case 3:
        fixture.live.charge(id, to: payer)
        oracle.payments[id, default: [:]][payer, default: 0] += 1
      case 4:
        guard oracle.payments[id]?[payer] ?? 0 > 0 else { continue }
        fixture.live.discharge(id, of: payer)
        oracle.payments[id]?[payer]? -= 1
      default:
        let salary = Int.random(in: 0..<50, using: &random)
        _ = try fixture.commit(["set Employee/\(Int.random(in: 1...2, using: &random)) salary \(salary)"])
      }
      for payer in payers {
        let (holding, expected) = (fixture.live.holding(of: payer), oracle.holding(of: payer, fixture.live))
        #expect(
          holding.queries == expected.queries && holding.rows == expected.rows,
          "seed \(seed), round \(round), step \(step)")
      }
    }
    for observer in observers { fixture.live.remove(observer) }
    for (observer, payments) in oracle.payments {
      for (payer, count) in payments { for _ in 0..<count { fixture.live.discharge(observer, of: payer) } }
    }
    #expect(fixture.live.counts == 0)
  }
}
