import KeyValueModel
import Testing

@testable import KeyValueObserving

@Suite("Live queries that read beyond their rows, and those that are left alone")
struct QueryReachTests {
  private func fixture(departments: Int = 2, employees: Int = 6) throws -> QueryFixture {
    var fixture = try QueryFixture()
    for number in 1...departments { _ = try fixture.told("put Department/\(number) {\"budget\":\(number)}") }
    for number in 1...employees {
      _ = try fixture.told(
        #"put Employee/\#(number) {"salary":\#(number),"department":"Department/\#(number % departments + 1)"}"#)
    }
    return fixture
  }

  @Test("one change behind a relationship reorders many rows")
  func reorder() throws {
    var fixture = try fixture()
    let query = try fixture.watch(sort: "department.budget,salary")
    #expect(fixture.rows(query).map { $0.suffix(1) } == ["2", "4", "6", "1", "3", "5"])
    let told = try fixture.told("set Department/1 budget 9")
    #expect(told == ["move Employee/2 0>3", "move Employee/4 1>4", "move Employee/6 2>5"])
  }

  @Test("a row that comes to another object follows that one, and the former no longer")
  func rewired() throws {
    var fixture = try fixture()
    try fixture.watch(filter: "department.budget > 1", sort: "salary")
    #expect(try fixture.told(#"set Employee/2 department "Department/2""#) == ["insert Employee/2 >1 entered"])
    #expect(try fixture.told("set Department/1 budget 0") == [])
    #expect(try fixture.told("set Department/2 budget 1").count == 4)
    #expect(try fixture.told(#"set Employee/2 department "Department/1""#, "set Department/1 budget 5").count == 3)
  }

  @Test("a sum over the members orders their owner")
  func fold() throws {
    var fixture = try fixture(departments: 2, employees: 4)
    try fixture.watch("Department", filter: "sum(staff.map(s, s.salary)) > 0", sort: "-payroll", keys: ["payroll"])
    // Department/1 has 2 and 4, Department/2 has 1 and 3.
    #expect(
      try fixture.told("set Employee/3 salary 30") == ["move Department/2 1>0 payroll"])
    #expect(
      try fixture.told("delete Employee/3", "set Employee/1 salary 0") == ["delete Department/2 0 left"])
  }

  @Test("a query that demands a value is found when the value is set, and left alone otherwise")
  func demanded() throws {
    var fixture = try QueryFixture(
      QueryFixture.staff, #"put Employee/1 {"name":"TX"}"#, #"put Employee/2 {"name":"CA"}"#)
    try fixture.watch(filter: "name == 'TX'", sort: "salary", keys: ["salary"])
    #expect(try fixture.told(#"set Employee/2 name "TX""#) == ["insert Employee/2 >1 entered"])
    #expect(try fixture.told("set Employee/2 salary -1") == ["update Employee/2 1>1 salary"])
    #expect(try fixture.told(#"set Employee/1 name "NY""#) == ["delete Employee/1 0 left"])
    #expect(try fixture.told("set Employee/1 salary 7") == [])
    #expect(try fixture.told(#"put Employee/3 {"name":"TX"}"#) == ["insert Employee/3 >0 created"])
    #expect(try fixture.told("delete Employee/3") == ["delete Employee/3 0 deleted"])
  }

  @Test("a computed key that is null is no demanded value")
  func demandedComputed() throws {
    var fixture = try QueryFixture(
      "entities: {A: {keys: {x: {type: integer}, y: {computed: x}}}}", "put A/1 {}", "put A/2 {\"x\":1}")
    try fixture.watch("A", filter: "y == null", keys: ["x"])
    #expect(try fixture.told("set A/2 x null") == ["insert A/2 >1 entered"])
    #expect(try fixture.told("set A/1 x 5") == ["delete A/1 0 left"])
  }

  @Test("a query that bounds a key is found where a value around the commit is within, and nowhere else")
  func bounded() throws {
    var fixture = try QueryFixture(
      "entities: {A: {keys: {x: {type: integer}, y: {type: integer}}}}", "put A/1 {\"x\":5}")
    let filters = ["x > 4", "x >= 5", "x > 5", "6 > x", "x < 5", "x <= 5", "x > 4 && y == 1", "x > 4 || y == 1"]
    let queries = try filters.map { try fixture.query("A", filter: $0, keys: ["x"]) }
    var routes = QueryRoutes()
    for (number, query) in queries.enumerated() {
      routes.add(number, query, QueryReach(of: query, in: fixture.model.schema))
    }
    let five = try fixture.model.state.requireRecord(ref("A/1"))
    _ = try fixture.commit(["set A/1 x 9"])
    let nine = try fixture.model.state.requireRecord(ref("A/1"))
    func found(_ keys: Set<Int>, _ before: ObjectRecord?, _ after: ObjectRecord?) -> Set<Int> {
      var found: Set<Int> = []
      routes.queries(of: five.entity, set: keys, before: before, after: after) { found.insert($0) }
      return found
    }
    // A value that equals a bound matches it whatever the operator: the filter decides.
    #expect(found([0], five, five) == [0, 1, 2, 3, 4, 5, 7])
    #expect(found([0], nine, nine) == [0, 1, 2, 7])
    #expect(found([0], five, nine) == [0, 1, 2, 3, 4, 5, 7])
    #expect(found([1], nine, nine) == [7])
    for (number, query) in queries.enumerated() {
      routes.remove(number, query, QueryReach(of: query, in: fixture.model.schema))
    }
    #expect(routes.count == 0)
  }

  @Test("the routes of a commit lead to the queries of its values and keys alone")
  func routes() throws {
    var routes = QueryRoutes()
    let fixture = try QueryFixture(QueryFixture.staff, #"put Employee/1 {"name":"a"}"#, #"put Employee/2 {"name":"b"}"#)
    let queries = [
      try fixture.query("Employee", filter: "name == 'a'"), try fixture.query("Employee", filter: "name == 'b'"),
      try fixture.query("Employee", filter: "salary > 1", keys: []), try fixture.query("Employee", keys: ["note"]),
      try fixture.query("Department"),
    ]
    let reaches = queries.map { QueryReach(of: $0, in: fixture.model.schema) }
    for (number, query) in queries.enumerated() { routes.add(number, query, reaches[number]) }
    let record = try fixture.model.state.requireRecord(ref("Employee/1"))
    let other = try fixture.model.state.requireRecord(ref("Employee/2"))
    func found(_ keys: Set<Int>, before: ObjectRecord?, after: ObjectRecord?) -> Set<Int> {
      var found: Set<Int> = []
      routes.queries(of: record.entity, set: keys, before: before, after: after) { found.insert($0) }
      return found
    }
    let salary = try #require(record.entity.indexOfKey("salary"))
    let note = try #require(record.entity.indexOfKey("note"))
    // Neither has a salary: a condition that bounds it may fail for them.
    #expect(found([salary], before: record, after: record) == [0, 2])
    #expect(found([note], before: other, after: other) == [1, 3])
    #expect(found([note], before: record, after: other) == [0, 1, 3])
    #expect(found([], before: record, after: record) == [])
    #expect(found([], before: nil, after: other) == [1, 2, 3])
    for (number, query) in queries.enumerated() { routes.remove(number, query, reaches[number]) }
    #expect(routes.count == 0)
  }
}
