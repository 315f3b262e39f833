import KeyValueModel
import Testing

@testable import KeyValueObserving

@Suite("The window of a live query with a limit")
struct QueryWindowTests {
  private func bench(_ count: Int) throws -> QueryBench {
    var bench = try QueryBench()
    for number in 1...count { _ = try bench.told("put Employee/\(number) {\"salary\":\(number * 10)}") }
    return bench
  }

  @Test("when a row leaves, the next one takes the last place")
  func refill() throws {
    var bench = try bench(5)
    try bench.watch(filter: "salary > 0", sort: "salary", limit: 3)
    #expect(
      try bench.told("set Employee/1 salary 0") == ["delete Employee/1 0 left", "insert Employee/4 >2 entered"])
    #expect(
      try bench.told("delete Employee/2", "delete Employee/3")
        == ["delete Employee/2 0 deleted", "delete Employee/3 1 deleted", "insert Employee/5 >1 entered"])
    #expect(try bench.told("delete Employee/5") == ["delete Employee/5 1 deleted"])
  }

  @Test("a row leaves the window because another enters")
  func displaced() throws {
    var bench = try bench(4)
    try bench.watch(sort: "salary", limit: 2)
    #expect(
      try bench.told("put Employee/9 {\"salary\":15}") == ["delete Employee/2 1 left", "insert Employee/9 >1 created"])
    #expect(
      try bench.told("set Employee/4 salary 1")
        == ["delete Employee/9 1 left", "insert Employee/4 >0 entered"])
  }

  @Test("a row whose sort value takes it out of the window has left")
  func movesOut() throws {
    var bench = try bench(4)
    try bench.watch(sort: "salary", limit: 2)
    #expect(
      try bench.told("set Employee/1 salary 100") == ["delete Employee/1 0 left", "insert Employee/3 >1 entered"])
    #expect(try bench.told("set Employee/1 salary 200") == [])
  }

  @Test("a window of one row")
  func single() throws {
    var bench = try bench(2)
    let query = try bench.watch(sort: "-salary", limit: 1)
    #expect(bench.rows(query) == ["Employee/2"])
    #expect(
      try bench.told("set Employee/1 salary 30") == ["delete Employee/2 0 left", "insert Employee/1 >0 entered"])
    #expect(try bench.told("delete Employee/2") == [])
    #expect(try bench.told("delete Employee/1") == ["delete Employee/1 0 deleted"])
    #expect(try bench.told("put Employee/3 {}", "put Employee/4 {}") == ["insert Employee/3 >0 created"])
  }

  @Test("what happens outside of the window is not told")
  func outside() throws {
    var bench = try bench(5)
    let query = try bench.watch(sort: "salary", limit: 2)
    #expect(try bench.told(#"set Employee/3 name "x""#, "delete Employee/5", "set Employee/4 salary 35") == [])
    #expect(bench.live.result(of: query)?.count == 2)
  }
}
