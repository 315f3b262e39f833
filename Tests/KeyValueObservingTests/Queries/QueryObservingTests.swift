import KeyValueModel
import Testing

@testable import KeyValueObserving

@Suite("Watchers of live queries")
struct QueryObservingTests {
  @Test("many who watch one query are told in one event with one content")
  func manyWatchers() throws {
    var fixture = try QueryFixture()
    let query = try fixture.watch(watcher: QueryFixture.watcher(0))
    for observer in 1..<100 { fixture.live.watch(query, QueryFixture.watcher(UInt64(observer), "c")) }
    #expect(fixture.live.count == 1)
    #expect(fixture.live.observerCount == 100)
    let events = try fixture.commit(["create Employee/1"])
    #expect(events.count == 1)
    #expect(events.first?.observers.count == 100)
    guard case .content(let content)? = events.first?.outcome else { throw UnknownOperation() }
    #expect(content.count == 1 && content.revision == 1 && content.writer == "w")
  }

  @Test("cells of one observer watch each a query of their own, and end with it")
  func cells() throws {
    var fixture = try QueryFixture()
    try fixture.watch(watcher: QueryFixture.watcher(1, "a"))
    try fixture.watch(sort: "name", watcher: QueryFixture.watcher(1, "b"))
    #expect(try fixture.commit(["create Employee/1"]).map(\.observers.count) == [1, 1])
    fixture.live.remove(QueryFixture.watcher(1, "a"))
    fixture.live.remove(QueryFixture.watcher(1, "none"))
    #expect(try fixture.commit(["create Employee/2"]).flatMap(\.observers).map(\.cell) == ["b"])
    fixture.live.remove(ObserverID(1))
    #expect(fixture.live.observerCount == 0)
    #expect(fixture.live.counts == 0)
    #expect(try fixture.commit(["create Employee/3"]).isEmpty)
  }

  @Test("a cell that watches another query no longer watches the former")
  func rebound() throws {
    var fixture = try QueryFixture()
    let former = try fixture.watch()
    let present = try fixture.watch(sort: "name")
    #expect(fixture.live.count == 1 && fixture.live.observerCount == 1)
    #expect(fixture.live.result(of: former) == nil)
    let isWatched = [
      fixture.live.watch(present, QueryFixture.watcher()), fixture.live.watch(former, QueryFixture.watcher()),
    ]
    #expect(isWatched == [true, false])
    #expect(try fixture.commit(["create Employee/1"]).count == 1)
  }

  @Test("a filter that comes to cost too much ends the query, and no other")
  func failed() throws {
    var fixture = try QueryFixture(QueryFixture.staff, filterCost: 100, "create Department/1")
    try fixture.watch(filter: "department.budget > 0", watcher: QueryFixture.watcher(1))
    try fixture.watch("Department", keys: ["budget"], watcher: QueryFixture.watcher(2))
    for number in 1...100 {
      #expect(try fixture.told(#"put Employee/\#(number) {"department":"Department/1"}"#) == [])
    }
    // One commit that changes an object that all rows read.
    #expect(
      try fixture.told("set Department/1 budget 1") == ["failed malformed-filter", "update Department/1 0>0 budget"])
    #expect(fixture.live.count == 1 && fixture.live.observerCount == 1)
    #expect(try fixture.told("set Department/1 budget 2") == ["update Department/1 0>0 budget"])
    fixture.live.remove(ObserverID(2))
    #expect(fixture.live.counts == 0)
  }

  @Test("a query that is no longer wanted is not evaluated to its end")
  func abandoned() throws {
    var fixture = try QueryFixture()
    for number in 1...1_000 { _ = try fixture.commit(["create Employee/\(number)"]) }
    let query = try fixture.query("Employee", filter: "salary == null")
    var (cost, checks) = (1_000_000, 0)
    #expect(throws: ModelError.self) {
      try LiveQuery(query, in: fixture.model.state, cost: &cost) {
        checks += 1
        return checks == 2
      }
    }
    #expect(checks == 2)
    let spent = 1_000_000 - cost
    _ = try LiveQuery(query, in: fixture.model.state, cost: &cost)
    let whole = 1_000_000 - cost - spent
    #expect(spent > 0 && spent < whole)
  }

  @Test("what a result was before a commit is known until it is settled, or too much is kept")
  func recent() throws {
    var fixture = try QueryFixture()
    fixture.live = LiveQueries(filterCost: 1000, recentLimit: 3)
    let query = try fixture.watch()
    for number in 1...5 { _ = try fixture.told("create Employee/\(number)") }
    func count(before revision: Revision) -> Int? { fixture.live.result(of: query, before: revision)?.count }
    #expect([1, 2, 3, 4, 5, 6].map(count) == [nil, nil, 2, 3, 4, 5])
    fixture.live.settle(upTo: 4)
    #expect([3, 4, 5, 6].map(count) == [nil, nil, 4, 5])
    fixture.live.settle(upTo: 9)
    #expect([5, 6].map(count) == [nil, 5])
  }
}
