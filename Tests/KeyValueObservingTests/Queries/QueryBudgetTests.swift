import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

/// The limit on the cost of a commit for all live queries together.
@Suite("The budget of a commit for live queries")
struct QueryBudgetTests {
  private let greedy = QueryPayer(0, 1)
  private let modest = QueryPayer(0, 2)
  private static let costly = "salary > 0 && [1,2,3,4,5,6,7,8,9,10].all(x, x < salary + 100)"

  /// Makes forty costly queries of one client, followed by one query of another.
  private func fixture(commitCost: Int) throws -> QueryFixture {
    var fixture = try QueryFixture()
    _ = try fixture.commit([#"put Employee/1 {"name":"n","salary":10}"#])
    fixture.live = LiveQueries(
      filterCost: 1_000_000, recentLimit: 100, commitCost: commitCost, revision: fixture.model.revision)
    for number in 1...40 {
      try fixture.watch(
        filter: "\(Self.costly) && salary > \(-number)", keys: ["salary"],
        watcher: QueryFixture.watcher(UInt64(number)))
      fixture.live.charge(ObserverID(UInt64(number)), to: greedy)
    }
    try fixture.watch(filter: "salary > 0", keys: ["salary"], watcher: QueryFixture.watcher(100))
    fixture.live.charge(ObserverID(100), to: modest)
    return fixture
  }

  private func observers(_ events: [QueryEvent], failed: Bool) -> Set<UInt64> {
    var found: Set<UInt64> = []
    for event in events {
      let hasFailed = if case .failed = event.outcome { true } else { false }
      if hasFailed == failed { found.formUnion(event.observers.map(\.id.rawValue)) }
    }
    return found
  }

  @Test("what does not suffice for all is kept from the client that asks for most, and another is told")
  func share() throws {
    var fixture = try fixture(commitCost: 1_000)
    let events = try fixture.commit(["set Employee/1 salary 11"])
    let (told, failed) = (observers(events, failed: false), observers(events, failed: true))
    #expect(told.contains(100) && !failed.contains(100))
    #expect(told.count > 5 && failed.count > 5 && told.union(failed).count == 41)
    // The failed queries have ended; the others continue.
    #expect(fixture.live.count == told.count)
    let next = try fixture.commit(["set Employee/1 salary 12"])
    #expect(observers(next, failed: false).contains(100))
    for number in Array(1...40) + [100] as [UInt64] {
      let observer = ObserverID(number)
      fixture.live.remove(observer)
      fixture.live.discharge(observer, of: number == 100 ? modest : greedy)
    }
    #expect(fixture.live.counts == 0)
  }

  @Test("a query that is watched by a modest client too is evaluated in that client's turn")
  func shared() throws {
    var fixture = try fixture(commitCost: 1_000)
    // The last query of the greedy client.
    fixture.live.charge(ObserverID(40), to: modest)
    let events = try fixture.commit(["set Employee/1 salary 11"])
    #expect(observers(events, failed: false).isSuperset(of: [40, 100]))
    #expect(!observers(events, failed: true).isEmpty)
  }

  @Test("where there is enough for all, all are told")
  func enough() throws {
    var fixture = try fixture(commitCost: 100_000)
    let events = try fixture.commit(["set Employee/1 salary 11"])
    #expect(observers(events, failed: false).count == 41 && observers(events, failed: true).isEmpty)
  }

  @Test("the objects of a large commit add to its budget")
  func largeCommit() throws {
    var fixture = try fixture(commitCost: 1_000)
    for number in 2...40 as ClosedRange<UInt64> { fixture.live.remove(ObserverID(number)) }
    // Some sixty steps each.
    let events = try fixture.commit((2...100).map { #"put Employee/\#($0) {"name":"n","salary":1}"# })
    #expect(observers(events, failed: false) == [1, 100] && observers(events, failed: true).isEmpty)
  }

  @Test("what is left of a query without observers is the caller's to free")
  func garbage() throws {
    var fixture = try fixture(commitCost: 100_000)
    #expect(fixture.live.takeForgotten() == nil)
    fixture.live.remove(ObserverID(1))
    #expect(fixture.live.takeForgotten() != nil)
    #expect(fixture.live.takeForgotten() == nil)
  }

  @Test("each query has one turn, and none comes before that of a payer who has spent less")
  func turns() {
    var random = SplitMix64(seed: seed)
    for _ in 0..<50 {
      let all = (0..<5).map { QueryPayer(1, UInt64($0)) }
      var payers: [Int: [QueryPayer]] = [:]
      for number in 0..<Int.random(in: 0..<60, using: &random) {
        payers[number] = all.filter { _ in Bool.random(using: &random) }
        if payers[number]?.isEmpty == true { payers[number] = [all[0]] }
      }
      var turns = QueryTurns(payers.keys.sorted(), budget: 1024) { payers[$0] ?? [] }
      var spent: [QueryPayer: Int] = [:]
      var waiting = Set(payers.keys)
      while let number = turns.next() {
        let isNew = waiting.remove(number) != nil
        #expect(isNew, "seed \(seed)")
        let own = payers[number] ?? []
        let least = own.map { spent[$0] ?? 0 }.min() ?? 0
        for other in waiting {
          #expect((payers[other] ?? []).allSatisfy { spent[$0] ?? 0 >= least }, "seed \(seed)")
        }
        let cost = Int.random(in: 1...15, using: &random)
        for payer in own { spent[payer, default: 0] += max(1, cost / own.count) }
        turns.spend(cost, by: own)
      }
      #expect(waiting.isEmpty, "seed \(seed)")
    }
  }
}
