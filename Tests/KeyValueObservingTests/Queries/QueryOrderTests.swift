import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

@Suite("Rows of a live query that come, go and move")
struct QueryOrderTests {
  private func fixture(_ salaries: Int?...) throws -> QueryFixture {
    var fixture = try QueryFixture()
    for (index, salary) in salaries.enumerated() {
      let value = salary.map { "\($0)" } ?? "null"
      _ = try fixture.told(#"put Employee/\#(index + 1) {"name":"n\#(index + 1)","salary":\#(value)}"#)
    }
    return fixture
  }

  @Test("of two rows that change places one moves")
  func swap() throws {
    var fixture = try fixture(10, 20, 30)
    try fixture.watch(sort: "salary")
    let told = try fixture.told("set Employee/1 salary 20", "set Employee/2 salary 10")
    #expect(told == ["move Employee/2 1>0"] || told == ["move Employee/1 0>1"])
  }

  @Test("the first row becomes the last in one move")
  func rotate() throws {
    var fixture = try fixture(10, 20, 30, 40)
    try fixture.watch(sort: "salary")
    #expect(try fixture.told("set Employee/1 salary 50") == ["move Employee/1 0>3"])
    #expect(try fixture.told("set Employee/1 salary 5") == ["move Employee/1 3>0"])
    // All salaries change, three of them without a row's passing another.
    let told = try fixture.told(
      "set Employee/1 salary 500", "set Employee/2 salary 200", "set Employee/3 salary 300",
      "set Employee/4 salary 400")
    #expect(told == ["move Employee/1 0>3"])
  }

  @Test("a row whose sort value changes without passing another is not named")
  func staysInOrder() throws {
    var fixture = try fixture(10, 20, 30)
    try fixture.watch(sort: "salary")
    #expect(try fixture.told("set Employee/2 salary 25") == [])
    try fixture.watch(sort: "salary", keys: ["salary"], watcher: QueryFixture.watcher(2))
    #expect(try fixture.told("set Employee/2 salary 26") == ["update Employee/2 1>1 salary"])
  }

  @Test("rows that merely shifted are not named")
  func shift() throws {
    var fixture = try fixture(10, 20, 30, 40)
    try fixture.watch(sort: "salary")
    #expect(try fixture.told("delete Employee/1") == ["delete Employee/1 0 deleted"])
    #expect(
      try fixture.told(#"put Employee/5 {"name":"new","salary":0}"#) == ["insert Employee/5 >0 created"])
    #expect(
      try fixture.told("delete Employee/5", #"set Employee/4 name "x""#)
        == ["delete Employee/5 0 deleted", "update Employee/4 3>2 name"])
  }

  @Test("equal sort keys are ordered by reference")
  func equalKeys() throws {
    var fixture = try fixture(10, 10, 10)
    let query = try fixture.watch(sort: "-salary")
    #expect(fixture.rows(query) == ["Employee/1", "Employee/2", "Employee/3"])
    #expect(try fixture.told("set Employee/1 salary 5") == ["move Employee/1 0>2"])
    #expect(try fixture.told("set Employee/1 salary 10") == ["move Employee/1 2>0"])
    #expect(try fixture.told("put Employee/10 {\"salary\":10}") == ["insert Employee/10 >1 created"])
  }

  @Test("null comes first, and last where the order is turned around")
  func nullFirst() throws {
    var fixture = try fixture(10, nil, -5)
    let ascending = try fixture.watch(sort: "salary")
    let descending = try fixture.watch(sort: "-salary", watcher: QueryFixture.watcher(2))
    #expect(fixture.rows(ascending) == ["Employee/2", "Employee/3", "Employee/1"])
    #expect(fixture.rows(descending) == ["Employee/1", "Employee/3", "Employee/2"])
    #expect(
      try fixture.told("set Employee/1 salary null") == ["move Employee/1 2>0", "move Employee/1 0>1"])
  }

  @Test("an object that is deleted and made again in one transaction lives on")
  func madeAgain() throws {
    var fixture = try fixture(10, 20)
    try fixture.watch(sort: "salary", keys: ["name", "salary"])
    #expect(
      try fixture.told("delete Employee/1", #"put Employee/1 {"name":"n1","salary":30}"#)
        == ["move Employee/1 0>1 salary"])
    #expect(try fixture.told("delete Employee/1", #"put Employee/1 {"name":"n1","salary":30}"#) == [])
    #expect(try fixture.told("delete Employee/1", "create Employee/3", "delete Employee/3").count == 1)
  }

  @Test("a commit that leaves the result as it was is not told of")
  func netNothing() throws {
    var fixture = try fixture(10, 20)
    try fixture.watch(filter: "salary > 5", sort: "salary", keys: ["name", "salary"])
    #expect(try fixture.told("set Employee/1 salary 10") == [])
    #expect(try fixture.told("set Employee/1 salary 30", "set Employee/1 salary 10") == [])
    #expect(try fixture.told(#"set Employee/1 note "unseen""#) == [])
    #expect(try fixture.told("put Employee/3 {\"salary\":9}", "delete Employee/3") == [])
  }

  @Test("created and entered, deleted and left are told apart")
  func reasons() throws {
    var fixture = try fixture(10, 20)
    try fixture.watch(filter: "salary > 15", sort: "salary")
    #expect(try fixture.told("set Employee/1 salary 16") == ["insert Employee/1 >0 entered"])
    #expect(try fixture.told("set Employee/1 salary 1") == ["delete Employee/1 0 left"])
    #expect(try fixture.told("put Employee/3 {\"salary\":99}") == ["insert Employee/3 >1 created"])
    #expect(try fixture.told("delete Employee/2") == ["delete Employee/2 0 deleted"])
    #expect(try fixture.told("delete Employee/1") == [])
  }

  @Test("a silent change reorders: a query shows what a fetch shows")
  func manual() throws {
    var fixture = try QueryFixture(
      QueryFixture.staff, #"put Employee/1 {"code":"a"}"#, #"put Employee/2 {"code":"b"}"#)
    try fixture.watch(filter: "code != 'z'", sort: "code", keys: ["code"])
    #expect(try fixture.told(#"set Employee/1 code "c""#) == ["move Employee/1 0>1 code"])
    #expect(try fixture.told(#"set Employee/2 code "z""#) == ["delete Employee/2 0 left"])
  }

  @Test("objects of subclasses are rows")
  func subclasses() throws {
    var fixture = try fixture(10)
    try fixture.watch(sort: "salary")
    #expect(try fixture.told("put Manager/1 {\"salary\":5}") == ["insert Manager/1 >0 created"])
  }

  @Test("a query that reads nothing of its rows hears of those that come and go")
  func readsNothing() throws {
    var fixture = try fixture(10)
    try fixture.watch(keys: [])
    #expect(try fixture.told("create Employee/2") == ["insert Employee/2 >1 created"])
    #expect(try fixture.told("set Employee/2 salary 5") == [])
    #expect(try fixture.told("delete Employee/1") == ["delete Employee/1 0 deleted"])
  }

  @Test("a query that is turned around moves all rows but one")
  func turnedAround() throws {
    var fixture = try fixture(10, 20, 30)
    let ascending = try fixture.watch(sort: "salary")
    let descending = try fixture.watch(sort: "-salary", watcher: QueryFixture.watcher(2))
    let former = try #require(fixture.live.result(of: ascending))
    let present = try #require(fixture.live.result(of: descending))
    let content = QueryContent(from: former, at: 3, to: present, in: fixture.model.state, at: 3)
    #expect(content.changes.map(\.kind) == [.move, .move])
    #expect(QueryContent(from: former, at: 3, to: former, in: fixture.model.state, at: 3).isEmpty)
  }
}

@Suite struct LongestIncreasingRunTests {
  @Test("it increases, and no other that does is longer")
  func bruteForce() {
    var random = SplitMix64(seed: seed)
    for _ in 0..<400 {
      let count = Int.random(in: 0...9, using: &random)
      // Often with equal numbers.
      let numbers = (0..<count).map { _ in Int.random(in: 0..<12, using: &random) }
      let run = LongestIncreasingRun.positions(of: numbers)
      #expect(zip(run, run.dropFirst()).allSatisfy { $0 < $1 && numbers[$0] < numbers[$1] }, "\(numbers): \(run)")
      #expect(run.count == longest(numbers), "KEYWAY_TEST_SEED=\(seed), \(numbers): \(run)")
    }
  }

  @Test("of one length it is always the same")
  func stable() {
    #expect(LongestIncreasingRun.positions(of: []) == [])
    #expect(LongestIncreasingRun.positions(of: [3, 2, 1]).count == 1)
    #expect(LongestIncreasingRun.positions(of: [1, 2, 3]) == [0, 1, 2])
    #expect(LongestIncreasingRun.positions(of: [4, 1, 2, 0, 3]) == [1, 2, 4])
  }

  /// Tries every subset.
  private func longest(_ numbers: [Int]) -> Int {
    var best = 0
    for subset in 0..<(1 << numbers.count) {
      let chosen = numbers.indices.filter { subset >> $0 & 1 == 1 }.map { numbers[$0] }
      if zip(chosen, chosen.dropFirst()).allSatisfy(<) { best = max(best, chosen.count) }
    }
    return best
  }
}
