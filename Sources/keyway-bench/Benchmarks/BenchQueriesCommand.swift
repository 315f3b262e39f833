import ArgumentParser
import Dispatch
import HTTPServer
import KeyValueModel
import KeyValueObserving
import KeywayServer
import Logging
import Store
import Support
import TestKit

/// `keyway-bench queries`: the cost of live queries to a commit, in this process, without a server.
struct BenchQueriesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queries",
    abstract: "Measures commits with live queries in this process, and how the times grow with rows and queries.",
    discussion: """
      First makes commits that move one row each, in results of 10, 1,000 and 100,000 rows: sorted by a key, filtered
      and sorted through a relationship, and between sections with aggregates. Then makes commits with 1 and 10,000
      queries that they do not touch, and commits that concern 1 and 1,000 streams of one query, up to the point at
      which their bytes are passed to the threads of the sockets. The best of several rounds counts. Each figure is
      followed by the cost of the same commit without queries, which is not subtracted. The ratio is that of the
      largest number to the smallest.
      """)

  @Option(help: "The number of commits for each figure.")
  var commits = 10_000

  @Option(help: "The number of rounds; the best counts.")
  var rounds = 3

  @Option(help: "The numbers of rows, separated by commas.")
  var rows = NumberList(10, 1000, 100_000)

  @Option(help: "The numbers of queries that are not touched, separated by commas.")
  var queries = NumberList(1, 10_000)

  @Option(help: "The numbers of streams of one query, separated by commas.")
  var watchers = NumberList(1, 1000)

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([("--commits", commits, 100...10_000_000), ("--rounds", rounds, 1...100)])
    try rows.check("--rows", 10...1_000_000)
    try queries.check("--queries", 1...1_000_000)
    try watchers.check("--watchers", 1...1_000_000)
  }

  func run() throws {
    try report.show(
      try QueryCosts(
        commits: commits, rounds: rounds, rowCounts: rows.numbers, queryCounts: queries.numbers,
        streamCounts: watchers.numbers
      ).report())
  }
}

/// Measures the cost that live queries in this process add to a commit. Creates new models for each figure.
private struct QueryCosts {
  let commits: Int
  let rounds: Int
  let rowCounts: [Int]
  let queryCounts: [Int]
  let streamCounts: [Int]

  /// Queries whose rows are moved one by one.
  enum Moving: String, CaseIterable {
    case sorted = "one row moves, sort"
    case filteredThroughToOne = "one row moves, filter and sort through a to-one"
    case aggregated = "one row moves to another of ten sections, each with three aggregates"
  }

  /// Queries that no commit touches.
  enum Untouched: String, CaseIterable {
    case otherValues = "untouched, equality filters on other values of the key that is set"
    case otherRanges = "untouched, range filters of the key that is set, elsewhere"
    case otherKeys = "untouched, range filters on keys that are not set"
  }

  /// The number of departments of the employees.
  private static let departmentCount = 100
  /// The number of employees in the measurements in which no query is touched.
  private static let bystanderCount = 100

  /// Measures everything.
  func report() throws -> CostReport {
    var report = CostReport()
    for subject in Moving.allCases {
      let figures = try rowCounts.map { count in
        CostReport.Cost(
          count: count, nanoseconds: try best { try time(subject, rows: count, isWatched: true) },
          bareNanoseconds: try best { try time(subject, rows: count, isWatched: false) })
      }
      report.growth.append(.init(subject: subject.rawValue, unit: "rows", figures: figures))
    }
    for subject in Untouched.allCases {
      let bare = try best { try time(subject, queries: 0) }
      let figures = try queryCounts.map { count in
        CostReport.Cost(
          count: count, nanoseconds: try best { try time(subject, queries: count) }, bareNanoseconds: bare)
      }
      report.growth.append(.init(subject: subject.rawValue, unit: "queries", figures: figures))
    }
    let bare = try best { try EmployeeStreams(employees: Self.bystanderCount, streams: 0).time(commits: commits) }
    let figures = try streamCounts.map { count in
      CostReport.Cost(
        count: count,
        nanoseconds: try best {
          try EmployeeStreams(employees: Self.bystanderCount, streams: count).time(commits: commits)
        }, bareNanoseconds: bare)
    }
    report.growth.append(
      .init(subject: "one row moves, equal watchers, encoded and handed over", unit: "streams", figures: figures))
    return report
  }

  private func best(_ measure: () throws -> Double) throws -> Double {
    try CostMeasurement.best(of: rounds, measure)
  }

  // MARK: Rows that move

  /// Returns the nanoseconds for one commit that moves one row over about half of the others.
  private func time(_ subject: Moving, rows count: Int, isWatched: Bool) throws -> Double {
    var model = try EmployeeModel(employees: count, departments: Self.departmentCount)
    if isWatched { try model.watch(words(subject), watcher: 0) }
    var places = (0..<count).map { number in
      switch subject {
      case .sorted: number
      case .filteredThroughToOne: EmployeeModel.department(of: number, among: count)
      case .aggregated: EmployeeModel.team(of: number)
      }
    }
    let span =
      switch subject {
      case .sorted: count
      case .filteredThroughToOne: Self.departmentCount
      case .aggregated: EmployeeModel.teamCount
      }
    return try CostMeasurement.nanoseconds(each: commits, notifications: isWatched ? commits : 0) { change in
      // Spread the changes over all rows, whatever their number, in an order in which each row passes some others.
      let number = change * 7927 % count
      places[number] = (places[number] + span / 2) % span
      let employee = model.employees[number]
      switch subject {
      case .sorted: return try model.commit(.set(employee, keyPath: "salary", .integer(Int64(places[number]))))
      case .filteredThroughToOne:
        let department = Value.reference(model.departments[places[number]])
        return try model.commit(.set(employee, keyPath: "department", department))
      case .aggregated: return try model.commit(.set(employee, keyPath: "team", .integer(Int64(places[number]))))
      }
    }
  }

  private func words(_ subject: Moving) -> Query.Words {
    var words = Query.Words(entity: "Employee")
    words.sort = "salary"
    words.keys = ["salary", "department"]
    switch subject {
    case .sorted: break
    case .filteredThroughToOne:
      words.filter = "department.budget > 0"
      words.sort = "department.name,salary"
    case .aggregated:
      words.keys = ["salary", "team"]
      words.section = "team"
      words.aggregate = "@count,@sum.salary,@max.salary"
    }
    return words
  }

  // MARK: Queries that are not touched

  /// Returns the nanoseconds for one commit with a number of queries that it does not touch.
  private func time(_ subject: Untouched, queries count: Int) throws -> Double {
    var model = try EmployeeModel(employees: Self.bystanderCount, departments: 1)
    for number in 0..<count {
      var words = Query.Words(entity: "Employee")
      words.sort = "age"
      words.keys = ["age"]
      words.filter =
        switch subject {
        case .otherValues: "state == 'other \(number)'"
        case .otherRanges: "salary > \(1_000_000_000 + number)"
        case .otherKeys: "age > 0 && age > \(1000 + number)"
        }
      try model.watch(words, watcher: UInt64(number))
    }
    return try CostMeasurement.nanoseconds(each: commits, notifications: 0) { change in
      let employee = model.employees[change % Self.bystanderCount]
      switch subject {
      case .otherValues:
        let state = change / Self.bystanderCount % 2 == 0 ? "here" : "there"
        return try model.commit(.set(employee, keyPath: "state", .string(state)))
      case .otherRanges, .otherKeys:
        return try model.commit(.set(employee, keyPath: "salary", .integer(Int64(change))))
      }
    }
  }
}

/// A model of employees with live queries.
private struct EmployeeModel {
  private var model: Model
  private var live = LiveQueries(filterCost: 1_000_000, recentLimit: 1000)
  let employees: [Reference]
  let departments: [Reference]

  private static let schema = """
    entities:
      Employee:
        keys:
          salary:     { type: integer }
          age:        { type: integer }
          state:      { type: string }
          team:       { type: integer }
          department: { toOne: Department, inverse: employees }
      Department:
        keys:
          name:      { type: integer }
          budget:    { type: integer }
          employees: { toMany: Employee, inverse: department }
    """

  /// Creates a model with a number of employees and departments.
  init(employees employeeCount: Int, departments departmentCount: Int) throws {
    model = Model(schema: try Schema(yaml: Self.schema))
    employees = try (0..<employeeCount).map { try Reference.numbered("Employee", $0) }
    departments = try (0..<departmentCount).map { try Reference.numbered("Department", $0) }
    for (number, department) in departments.enumerated() {
      let body: JSONObject = ["name": .integer(Int64(number)), "budget": .integer(1)]
      _ = try model.commit(Transaction([.create(department, body)]))
    }
    let creations = CostMeasurement.creations(of: employeeCount) { [employees, departments] number in
      let department = departments[Self.department(of: number, among: employeeCount) % departmentCount]
      return .create(
        employees[number],
        [
          "salary": .integer(Int64(number)), "age": .integer(Int64(number % 70)), "state": .string("here"),
          "team": .integer(Int64(Self.team(of: number))), "department": .reference(department),
        ])
    }
    for transaction in creations { _ = try model.commit(transaction) }
  }

  /// Returns the number of the department that an employee starts in. Few employees are spread over all departments
  /// too.
  static func department(of employee: Int, among count: Int) -> Int {
    count < 100 ? employee * 100 / count : employee % 100
  }

  /// The number of teams of the employees.
  static let teamCount = 10

  /// Returns the team that an employee starts in.
  static func team(of employee: Int) -> Int { employee % teamCount }

  /// Adds a watcher of a query.
  mutating func watch(_ words: Query.Words, watcher: UInt64) throws {
    let query = try LiveQuery(Query(words, in: model.schema), in: model.state, costLimit: .max)
    live.add(query, observer: QueryObserver(id: ObserverID(watcher), cell: nil))
  }

  /// Commits an operation and updates the queries. Returns the number of rows that move.
  mutating func commit(_ operation: Operation) throws -> Int {
    let commit = try model.commit(Transaction([operation]))
    var moves = 0
    live.notify(CollectionOfOne(commit), of: model.state) { event in
      guard case .content(let content) = event.outcome else { return }
      for change in content.changes where change.kind == .move { moves += 1 }
    }
    live.settle(upTo: commit.revision)
    return moves
  }
}

/// A store with streams of one live query, as in a server, but without sockets: it measures a commit up to the point at
/// which its content is passed to the threads that write to sockets.
private struct EmployeeStreams {
  private let store: Store
  private let hub: StreamHub
  private let employees: [Reference]

  private static let schema = "entities: {Employee: {keys: {salary: {type: integer}, name: {type: string}}}}"

  /// Creates a store of a number of employees, and a number of streams of all of them by salary.
  init(employees count: Int, streams: Int) throws {
    hub = StreamHub(limits: ServerLimits(), logger: Logger(label: "bench"))
    let registry = StreamRegistry(
      hub: hub, epoch: "bench", limits: StreamLimits(), random: { UInt64.random(in: .min ... .max) })
    var limits = StoreLimits()
    limits.queuedWrites = .max
    let schema = try Schema(yaml: Self.schema)
    store = Store(schema: schema, epoch: "bench", limits: limits, publisher: registry)
    employees = try (0..<count).map { try Reference.numbered("Employee", $0) }
    try write(
      [
        Transaction(
          employees.enumerated().map {
            .create($1, ["salary": .integer(Int64($0)), "name": .string("Employee \($0)")])
          })
      ])
    var words = Query.Words(entity: "Employee")
    words.sort = "salary"
    words.limit = 100
    let request = QueryStreamRequest(
      query: try Query(words, in: schema), context: nil, cursor: nil, overflow: .coalesce)
    for _ in 0..<streams {
      _ = try QueryStreams(registry).open(request, in: store)
    }
  }

  /// Commits a number of changes, each of which moves a row to the other end, and returns the nanoseconds for each.
  func time(commits: Int) throws -> Double {
    let transactions = (0..<commits).map { change in
      let number = change * 7927 % employees.count
      let place = change / employees.count % 2 == 0 ? employees.count + number : number
      return Transaction([.set(employees[number], keyPath: "salary", .integer(Int64(place)))])
    }
    let start = SystemClock.now()
    try write(transactions)
    return Double(SystemClock.now() - start) / Double(commits)
  }

  private func write(_ transactions: [Transaction]) throws {
    let done = DispatchSemaphore(value: 0)
    for (index, transaction) in transactions.enumerated() {
      let isLast = index == transactions.count - 1
      let isTaken = store.submit(transaction) { outcome, _, _ in
        if case .failure(let error) = outcome { fatalError("a benchmark's own transaction failed: \(error)") }
        if isLast { done.signal() }
      }
      precondition(isTaken, "the queue of a benchmark has no limit")
    }
    done.wait()
  }
}
