import KeyValueModel
import Testing

@testable import KeyValueObserving

@Suite("The window of a live query with a limit")
struct QueryWindowTests {
  private func fixture(_ count: Int) throws -> QueryFixture {
    var fixture = try QueryFixture()
    for number in 1...count { _ = try fixture.told("put Employee/\(number) {\"salary\":\(number * 10)}") }
    return fixture
  }

  @Test("when a row leaves, the next one takes the last place")
  func refill() throws {
    var fixture = try fixture(5)
    try fixture.watch(filter: "salary > 0", sort: "salary", limit: 3)
    #expect(
      try fixture.told("set Employee/1 salary 0") == ["delete Employee/1 0 left", "insert Employee/4 >2 entered"])
    #expect(
      try fixture.told("delete Employee/2", "delete Employee/3")
        == ["delete Employee/2 0 deleted", "delete Employee/3 1 deleted", "insert Employee/5 >1 entered"])
    #expect(try fixture.told("delete Employee/5") == ["delete Employee/5 1 deleted"])
  }

  @Test("a row leaves the window because another enters")
  func displaced() throws {
    var fixture = try fixture(4)
    try fixture.watch(sort: "salary", limit: 2)
    #expect(
      try fixture.told("put Employee/9 {\"salary\":15}") == [
        "delete Employee/2 1 left", "insert Employee/9 >1 created",
      ])
    #expect(
      try fixture.told("set Employee/4 salary 1")
        == ["delete Employee/9 1 left", "insert Employee/4 >0 entered"])
  }

  @Test("a row whose sort value takes it out of the window has left")
  func movesOut() throws {
    var fixture = try fixture(4)
    try fixture.watch(sort: "salary", limit: 2)
    #expect(
      try fixture.told("set Employee/1 salary 100") == ["delete Employee/1 0 left", "insert Employee/3 >1 entered"])
    #expect(try fixture.told("set Employee/1 salary 200") == [])
  }

  @Test("a window of one row")
  func single() throws {
    var fixture = try fixture(2)
    let query = try fixture.watch(sort: "-salary", limit: 1)
    #expect(fixture.rows(query) == ["Employee/2"])
    #expect(
      try fixture.told("set Employee/1 salary 30") == ["delete Employee/2 0 left", "insert Employee/1 >0 entered"])
    #expect(try fixture.told("delete Employee/2") == [])
    #expect(try fixture.told("delete Employee/1") == ["delete Employee/1 0 deleted"])
    #expect(try fixture.told("put Employee/3 {}", "put Employee/4 {}") == ["insert Employee/3 >0 created"])
  }

  @Test("what happens outside of the window is not told")
  func outside() throws {
    var fixture = try fixture(5)
    let query = try fixture.watch(sort: "salary", limit: 2)
    #expect(try fixture.told(#"set Employee/3 name "x""#, "delete Employee/5", "set Employee/4 salary 35") == [])
    #expect(fixture.live.result(of: query)?.count == 2)
  }
}
