import KeyValueModel
import Testing

@testable import KeyValueObserving

@Suite("Aggregates of a live query")
struct QueryAggregateTests {
  private func fixture() throws -> QueryFixture {
    try QueryFixture(
      QueryFixture.staff, filterCost: 1_000_000,
      #"create Department/1 {"name":"Sales","budget":5}"#, #"create Department/2 {"name":"IT","budget":7}"#,
      #"create Employee/1 {"name":"a","salary":10,"department":"Department/1"}"#,
      #"create Employee/2 {"name":"b","salary":20,"department":"Department/2"}"#,
      #"create Employee/3 {"name":"c","salary":30,"department":"Department/2"}"#,
      #"create Employee/4 {"name":"d","department":"Department/2"}"#)
  }

  /// Commits, and returns the summaries in the events: `total failed`, and the sections or aggregates as JSON.
  private func summaries(_ fixture: inout QueryFixture, _ operations: String...) throws -> [String] {
    try fixture.commit(operations).map { event in
      guard case .content(let content) = event.outcome else { return "failed" }
      let sections = content.sections?.map { "\($0.name.json) \($0.count) \(Value.array($0.aggregates).json)" } ?? []
      return (["\(content.total) \(content.failed)", Value.array(content.aggregates).json] + sections)
        .joined(separator: " ")
    }
  }

  @Test("all rows count, those outside of the window too")
  func window() throws {
    var fixture = try fixture()
    try fixture.watch(sort: "salary", limit: 2, aggregate: "@count,@sum.salary,@avg.salary,@min.salary,@max.salary")
    #expect(try summaries(&fixture, "set Employee/3 salary 40") == ["4 0 [4,70,17.5,10,40]"])
    #expect(try summaries(&fixture, #"create Employee/5 {"salary":50}"#) == ["5 0 [5,120,24,10,50]"])
    #expect(try summaries(&fixture, #"set Employee/5 note "x""#) == [])
    #expect(try summaries(&fixture, "delete Employee/5", "delete Employee/3") == ["3 0 [3,30,10,10,20]"])
  }

  @Test("a content has all sections of the window, and what all their rows come to")
  func sections() throws {
    var fixture = try fixture()
    try fixture.watch(sort: "-salary", section: "department.name", limit: 3, aggregate: "@sum.salary,@count")
    #expect(try summaries(&fixture, "set Employee/1 salary 11") == [])
    #expect(try summaries(&fixture, "set Employee/2 salary 25") == ["4 0 [] \"IT\" 3 [55,3]"])
    #expect(
      try summaries(&fixture, #"set Department/1 name "Art""#)
        == ["4 0 [] \"Art\" 1 [11,1] \"IT\" 2 [55,3]"])
    // The only row of a section moves among all rows, and stays in its section.
    #expect(try summaries(&fixture, "set Employee/1 salary 12") == ["4 0 [] \"Art\" 1 [12,1] \"IT\" 2 [55,3]"])
    #expect(
      try summaries(&fixture, #"set Employee/4 department "Department/1""#)
        == ["4 0 [] \"Art\" 2 [12,2] \"IT\" 1 [55,2]"])
  }

  @Test("a value behind a relationship is followed")
  func paths() throws {
    var fixture = try fixture()
    try fixture.watch(aggregate: "@sum.department.budget")
    #expect(try summaries(&fixture, "set Department/2 budget 8") == ["4 0 [29]"])
    #expect(try summaries(&fixture, "set Employee/4 department null") == ["4 0 [21]"])
  }

  @Test("objects for which the filter fails are counted, and that number alone is not told")
  func failures() throws {
    var fixture = try fixture()
    let query = try fixture.watch(filter: "salary > 15", aggregate: "@count")
    #expect(fixture.live.result(of: query)?.failed == 1)
    #expect(try summaries(&fixture, "set Employee/1 salary null") == [])
    #expect(fixture.live.result(of: query)?.failed == 2)
    #expect(try summaries(&fixture, "set Employee/4 salary 99") == ["3 1 [3]"])
    #expect(try summaries(&fixture, "delete Employee/1") == [])
    #expect(try summaries(&fixture, "delete Employee/2") == ["2 0 [2]"])
  }

  @Test("key paths that a row shows are followed, and named as they were written")
  func shownPaths() throws {
    var fixture = try fixture()
    try fixture.watch(
      filter: "salary > 15", keys: ["department.name", "name", "department.staff.@count", "department.name"])
    #expect(
      try fixture.told(#"set Department/2 name "Lab""#)
        == ["update Employee/2 0>0 department.name", "update Employee/3 1>1 department.name"])
    #expect(
      try fixture.told(#"set Employee/1 department "Department/2""#)
        == ["update Employee/2 0>0 department.staff.@count", "update Employee/3 1>1 department.staff.@count"])
    #expect(
      try fixture.told(#"set Employee/3 department null"#) == [
        "update Employee/2 0>0 department.staff.@count",
        "update Employee/3 1>1 department.name department.staff.@count",
      ])
  }

  @Test(
    "what is no aggregate, no key path, or leads through a collection",
    arguments: [
      ("", "malformed-query"), ("salary", "malformed-query"), ("@sum", "malformed-query"),
      ("@count.salary", "malformed-query"), ("@count,", "malformed-query"), ("@median.salary", "malformed-query"),
      ("@unionOfObjects.name", "malformed-query"), ("@sum.department.staff.salary", "malformed-query"),
      ("@sum.department.staff.@count", "malformed-query"), ("@max.department.staff", "malformed-query"),
      ("@sum.", "malformed-key-path"), ("@sum.nope", "undefined-key"), ("@sum.name", "invalid-value"),
      ("@min.department", "invalid-value"),
    ])
  func mistakes(text: String, code: String) throws {
    let fixture = try fixture()
    let error = try #require(throws: ModelError.self) { try fixture.query("Employee", aggregate: text) }
    #expect(error.code.rawValue == code, "\(error)")
  }

  @Test("what a commit costs does not grow with the rows")
  func cost() throws {
    func cost(_ count: Int) throws -> Int {
      var fixture = try QueryFixture()
      _ = try fixture.commit(
        (1...count).map { #"create Employee/\#($0) {"salary":\#($0 * 7 % 50),"note":"\#($0 % 10)"}"# })
      let query = try fixture.query(
        "Employee", section: "note", keys: ["name"], aggregate: "@count,@sum.salary,@max.salary")
      var live = try LiveQuery(query, in: fixture.model.state, costLimit: .max)
      let commit = try fixture.model.commit(Transaction([try operation("set Employee/7 salary 1000")]))
      let objects: Set<Reference> = [try ref("Employee/7")]
      var cost = 1_000_000
      _ = try live.apply(QueryTouch(objects: objects), in: fixture.model.state, cost: &cost)
      #expect(commit.revision > 0)
      return 1_000_000 - cost
    }
    #expect(try cost(50) == cost(5000))
  }
}
