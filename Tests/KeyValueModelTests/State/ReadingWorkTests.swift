import KeyValueModel
import TestKit
import Testing

@Suite("The work of reading")
struct ReadingWorkTests {
  private static let schema = """
    entities:
      Employee:
        keys:
          name: { type: string }
          salary: { type: number }
          level: { type: integer }
          department: { toOne: Department, inverse: employees }
          share: { type: number, computed: "salary / department.total" }
          rank: { type: integer, computed: "department.employees.filter(e, e.salary > salary).size()" }
          peers: { computed: department.names }
      Department:
        keys:
          name: { type: string }
          employees: { toMany: Employee, ordered: true, inverse: department }
          parent: { toOne: Department }
          total: { type: number, computed: employees.@sum.salary }
          highest: { type: number, computed: employees.@max.salary }
          names: { computed: employees.@distinctUnionOfObjects.name }
          levels: { computed: employees.level }
          mean: { type: number, computed: "total / double(size(employees))" }
          best: { type: integer, computed: "max(employees.filter(e, e.salary > 100.0).map(e, e.level))" }
          above: { type: number, computed: "mean + parent.mean" }
          wrong: { type: integer, computed: "sum(employees.map(e, e.level)) / (size(employees) - 2)" }
    """

  /// Makes departments with this number of employees each, and random values.
  private static func state(
    departments: Int, employees: Int, _ random: inout SplitMix64
  ) throws -> ModelState {
    var fixture = try Fixture(schema)
    for department in 0..<departments {
      let parent = department > 0 && random.chance(70) ? #""Department/\#(department - 1)""# : "null"
      try fixture.create("Department/\(department)", #"{"name":"d\#(department)","parent":\#(parent)}"#)
      for index in 0..<employees {
        let salary = random.chance(10) ? "null" : "\(Int.random(in: 0..<300, using: &random)).5"
        let level = random.chance(10) ? "null" : "\(Int.random(in: 0..<5, using: &random))"
        try fixture.create(
          "Employee/\(department)-\(index)",
          #"{"name":"n\#(index % 3)","salary":\#(salary),"level":\#(level),"department":"Department/\#(department)"}"#)
      }
    }
    return fixture.model.state
  }

  private static let paths: [(entity: String, path: String)] = [
    ("Employee", "department.total"), ("Employee", "department.employees.@sum.salary"), ("Employee", "share"),
    ("Employee", "rank"), ("Employee", "department.mean"), ("Employee", "department.parent.above"),
    ("Employee", "department.names"), ("Employee", "peers"), ("Employee", "department.levels"),
    ("Employee", "department.wrong"), ("Department", "employees.department.total"), ("Department", "employees.share"),
    ("Department", "employees.department.@unionOfObjects.total"), ("Department", "employees.@max.rank"),
    ("Department", "employees.@unionOfArrays.peers"), ("Department", "best"), ("Department", "above"),
    ("Department", "wrong"), ("Department", "parent.employees.@avg.share"), ("Department", "employees.@count"),
  ]

  @Test("Values and revisions read within a piece of work are the same as those read without it")
  func oracle() throws {
    for round in 0..<20 {
      var random = SplitMix64(seed: seed, part: UInt64(round))
      let state = try Self.state(
        departments: Int.random(in: 1..<5, using: &random), employees: Int.random(in: 0..<7, using: &random), &random)
      let work = ReadingWork(steps: .max)
      let metered = MeteredState(state, work)
      // Readings come in any order: the traces of one must not show in another.
      for _ in 0..<150 {
        guard let (entity, text) = Self.paths.randomElement(using: &random),
          let reference = state.references(of: try state.schema.requireEntity(entity)).randomElement(using: &random)
        else { continue }
        let path = try state.schema.resolve(text, from: try state.schema.requireEntity(entity))
        let (expected, found) = (state.reading(reference, at: path), metered.reading(reference, at: path))
        #expect(found == expected, "\(reference) \(text), seed \(seed), round \(round)")
        #expect(metered.revision(of: reference) == state.revision(of: reference), "\(reference), seed \(seed)")
        var (left, right): ([UInt8], [UInt8]) = ([], [])
        let record = try state.requireRecord(reference)
        #expect(
          state.appendJSON(of: reference, record, to: &left) == metered.appendJSON(of: reference, record, to: &right))
        #expect(left == right, "\(reference), seed \(seed), round \(round)")
      }
      #expect(work.stop == nil)
    }
  }

  @Test("A filter and a sort give what they give one object at a time")
  func fetches() throws {
    var random = SplitMix64(seed: seed)
    let state = try Self.state(departments: 4, employees: 8, &random)
    let entity = try state.schema.requireEntity("Employee")
    let filters = [
      "department.total > 400.0", "share > 0.1 && department.best == 4", "department.mean > salary",
      "department.wrong == 1 || department.names.exists(n, n == name)", "department.parent.above > 300.0",
      "department.employees.exists(e, e.level == 4) && peers.size() > 1",
    ]
    for text in filters {
      let filter = try Filter(text, of: entity, in: state.schema)
      for sort in ["-department.total,name", "department.parent.mean,-share", "rank"] {
        let order = try SortOrder(sort, of: entity, in: state.schema)
        let expected = try state.references(of: entity)
          .filter { reference in
            var cost = Int.max
            return try filter.verdict(on: reference, in: state, cost: &cost) == .met
          }
          .map { order.rank(of: $0, in: state) }.sorted(by: order.precedes).map(\.reference)
        let metered = MeteredState(state, ReadingWork(steps: .max))
        var words = Query.Words(entity: entity.name)
        (words.filter, words.sort) = (text, sort)
        let query = try Query(words, in: state.schema)
        let found = try metered.fetch(query, isSorted: true) { state.references(of: entity) }
        #expect(found.references == expected, "\(text) by \(sort), seed \(seed)")
      }
    }
  }

  @Test(
    "A value that all objects of a fetch read is computed once: twice the objects take twice the steps",
    arguments: [
      (filter: nil, sort: "department.total"), (nil, "-department.employees.@avg.salary,name"),
      (nil, "department.mean"), ("department.total > 0.0", nil), ("department.best == 1", nil),
      ("share > 0.5", nil), ("size(department.names) > 0", nil), ("'n1' in peers", "department.highest"),
    ] as [(filter: String?, sort: String?)])
  func once(_ filter: String?, _ sort: String?) throws {
    func steps(_ employees: Int) throws -> Int {
      var random = SplitMix64(seed: seed)
      let state = try Self.state(departments: 1, employees: employees, &random)
      let entity = try state.schema.requireEntity("Employee")
      let work = ReadingWork(steps: .max)
      var words = Query.Words(entity: entity.name)
      (words.filter, words.sort) = (filter, sort)
      let query = try Query(words, in: state.schema)
      _ = try MeteredState(state, work).fetch(query, isSorted: true) { state.references(of: entity) }
      return work.spentSteps
    }
    let (few, many) = (try steps(100), try steps(200))
    #expect(few > 100 && many < 3 * few, "\(few) and \(many)")
  }

  @Test("Work whose steps are used up finds no more objects, and says that what was read is worth nothing")
  func exhausted() throws {
    var random = SplitMix64(seed: seed)
    let state = try Self.state(departments: 1, employees: 50, &random)
    let department = try ref("Department/0")
    let work = ReadingWork(steps: 60)
    let metered = MeteredState(state, work)
    #expect(throws: Never.self) { try work.check() }
    _ = metered.value(
      of: department, at: try state.schema.resolve("total", from: state.requireRecord(department).entity))
    #expect(work.stop == .steps && work.remainingSteps == 0 && metered.record(department) == nil)
    #expect(throws: ModelError.self) { try work.check() }
    #expect(!work.spend(1) && !work.look())
  }

  @Test("An expression gets no more than what is left, and the work ends with it")
  func expression() throws {
    var random = SplitMix64(seed: seed)
    let state = try Self.state(departments: 1, employees: 60, &random)
    let employee = try ref("Employee/0-1")
    let path = try state.schema.resolve("rank", from: state.requireRecord(employee).entity)
    let whole = ReadingWork(steps: .max)
    #expect(MeteredState(state, whole).value(of: employee, at: path) == state.value(of: employee, at: path))
    let work = ReadingWork(steps: whole.spentSteps / 2)
    #expect(MeteredState(state, work).value(of: employee, at: path).isNull)
    #expect(work.stop == .steps)
  }

  @Test("Work is given up within some thousand steps once nobody waits for it")
  func abandoned() throws {
    var looks = 0
    let work = ReadingWork(steps: .max) {
      looks += 1
      return looks == 4
    }
    var steps = 0
    while work.spend() { steps += 1 }
    #expect(work.stop == .abandoned && looks == 4)
    #expect((10_000...100_000).contains(steps))
    #expect(throws: ModelError.self) { try work.check() }
  }

  @Test("JSON that grows too long is stopped soon after, wherever lists are nested in it")
  func boundedJSON() throws {
    let list = Value.array(Array(repeating: .string(String(repeating: "x", count: 98)), count: 1000))
    let value = Value.array(Array(repeating: list, count: 1000))
    for limit in [0, 1, 500, 100_000, 250_000] {
      var bytes: [UInt8] = []
      #expect(!value.appendJSON(to: &bytes, upTo: limit))
      #expect(bytes.count > limit && bytes.count < limit + 200, "\(limit)")
    }
    var (whole, bounded): ([UInt8], [UInt8]) = ([], [])
    list.appendJSON(to: &whole)
    #expect(list.appendJSON(to: &bounded, upTo: whole.count) && bounded == whole)
  }
}
