import KeyValueModel
import Testing

@testable import KeyValueObserving

@Suite("Watchers of live queries")
struct QueryObservingTests {
  @Test("many who watch one query are told in one event with one content")
  func manyWatchers() throws {
    var bench = try QueryBench()
    let query = try bench.watch(watcher: QueryBench.watcher(0))
    for observer in 1..<100 { bench.live.watch(query, QueryBench.watcher(UInt64(observer), "c")) }
    #expect(bench.live.count == 1)
    #expect(bench.live.observerCount == 100)
    let events = try bench.commit(["create Employee/1"])
    #expect(events.count == 1)
    #expect(events.first?.observers.count == 100)
    guard case .content(let content)? = events.first?.outcome else { throw UnknownOperation() }
    #expect(content.count == 1 && content.revision == 1 && content.writer == "w")
  }

  @Test("cells of one observer watch each a query of their own, and end with it")
  func cells() throws {
    var bench = try QueryBench()
    try bench.watch(watcher: QueryBench.watcher(1, "a"))
    try bench.watch(sort: "name", watcher: QueryBench.watcher(1, "b"))
    #expect(try bench.commit(["create Employee/1"]).map(\.observers.count) == [1, 1])
    bench.live.remove(QueryBench.watcher(1, "a"))
    bench.live.remove(QueryBench.watcher(1, "none"))
    #expect(try bench.commit(["create Employee/2"]).flatMap(\.observers).map(\.cell) == ["b"])
    bench.live.remove(ObserverID(1))
    #expect(bench.live.observerCount == 0)
    #expect(bench.live.counts == 0)
    #expect(try bench.commit(["create Employee/3"]).isEmpty)
  }

  @Test("a cell that watches another query no longer watches the former")
  func rebound() throws {
    var bench = try QueryBench()
    let former = try bench.watch()
    let present = try bench.watch(sort: "name")
    #expect(bench.live.count == 1 && bench.live.observerCount == 1)
    #expect(bench.live.result(of: former) == nil)
    let isWatched = [bench.live.watch(present, QueryBench.watcher()), bench.live.watch(former, QueryBench.watcher())]
    #expect(isWatched == [true, false])
    #expect(try bench.commit(["create Employee/1"]).count == 1)
  }

  @Test("a filter that comes to cost too much ends the query, and no other")
  func failed() throws {
    var bench = try QueryBench(QueryBench.staff, filterCost: 100, "create Department/1")
    try bench.watch(filter: "department.budget > 0", watcher: QueryBench.watcher(1))
    try bench.watch("Department", keys: ["budget"], watcher: QueryBench.watcher(2))
    for number in 1...100 {
      #expect(try bench.told(#"put Employee/\#(number) {"department":"Department/1"}"#) == [])
    }
    // One commit that all rows are read through.
    #expect(
      try bench.told("set Department/1 budget 1") == ["failed malformed-filter", "update Department/1 0>0 budget"])
    #expect(bench.live.count == 1 && bench.live.observerCount == 1)
    #expect(try bench.told("set Department/1 budget 2") == ["update Department/1 0>0 budget"])
    bench.live.remove(ObserverID(2))
    #expect(bench.live.counts == 0)
  }

  @Test("what a result was before a commit is known until it is settled, or too much is kept")
  func recent() throws {
    var bench = try QueryBench()
    bench.live = LiveQueries(filterCost: 1000, recentLimit: 3)
    let query = try bench.watch()
    for number in 1...5 { _ = try bench.told("create Employee/\(number)") }
    func count(before revision: Revision) -> Int? { bench.live.result(of: query, before: revision)?.count }
    #expect([1, 2, 3, 4, 5, 6].map(count) == [nil, nil, 2, 3, 4, 5])
    bench.live.settle(upTo: 4)
    #expect([3, 4, 5, 6].map(count) == [nil, nil, 4, 5])
    bench.live.settle(upTo: 9)
    #expect([5, 6].map(count) == [nil, 5])
  }
}
