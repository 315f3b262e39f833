import KeyValueModel
import KeyValueObserving

/// Times what live queries in this process add to a commit. Builds its models anew for each figure.
struct QueryBenchmark {
  let commits: Int
  let rounds: Int
  let rowCounts: [Int]
  let queryCounts: [Int]
  let watcherCounts: [Int]

  /// A query whose rows are moved one by one.
  enum Moving: String, CaseIterable {
    case sorted = "one row moves, sort"
    case filteredThroughToOne = "one row moves, filter and sort through a to-one"
  }

  /// Queries that no commit touches.
  enum Untouched: String, CaseIterable {
    case otherValues = "untouched, equality filters on other values of the key that is set"
    case otherRanges = "untouched, range filters of the key that is set, elsewhere"
    case otherKeys = "untouched, range filters on keys that are not set"
  }

  /// How many departments the employees are spread over.
  private static let departmentCount = 100
  /// How many employees there are where nobody is touched.
  private static let bystanderCount = 100

  func run() throws -> QueryBenchmarkReport {
    var report = QueryBenchmarkReport()
    for subject in Moving.allCases {
      let figures = try rowCounts.map { count in
        QueryBenchmarkReport.Figure(
          count: count, nanoseconds: try best { try time(subject, rows: count, isWatched: true) },
          bareNanoseconds: try best { try time(subject, rows: count, isWatched: false) })
      }
      report.growth.append(.init(subject: subject.rawValue, unit: "rows", figures: figures))
    }
    for subject in Untouched.allCases {
      let bare = try best { try time(subject, queries: 0) }
      let figures = try queryCounts.map { count in
        QueryBenchmarkReport.Figure(
          count: count, nanoseconds: try best { try time(subject, queries: count) }, bareNanoseconds: bare)
      }
      report.growth.append(.init(subject: subject.rawValue, unit: "queries", figures: figures))
    }
    let bare = try best { try WatcherBench(employees: Self.bystanderCount, streams: 0).time(commits: commits) }
    let figures = try watcherCounts.map { count in
      QueryBenchmarkReport.Figure(
        count: count,
        nanoseconds: try best {
          try WatcherBench(employees: Self.bystanderCount, streams: count).time(commits: commits)
        }, bareNanoseconds: bare)
    }
    report.growth.append(
      .init(subject: "one row moves, equal watchers, encoded and handed over", unit: "streams", figures: figures))
    return report
  }

  private func best(_ measure: () throws -> Double) throws -> Double {
    var best = try measure()
    for _ in 1..<max(rounds, 2) { best = min(best, try measure()) }
    return best
  }

  // MARK: Rows that move

  /// Nanoseconds for one commit that moves one of so many rows over about half of the others.
  private func time(_ subject: Moving, rows count: Int, isWatched: Bool) throws -> Double {
    var bench = try QueryBenchModel(employees: count, departments: Self.departmentCount)
    if isWatched { try bench.watch(words(subject), watcher: 0) }
    var moves = 0
    var places = (0..<count).map { subject == .sorted ? $0 : QueryBenchModel.department(of: $0, among: count) }
    let span = subject == .sorted ? count : Self.departmentCount
    let start = MonotonicClock.now()
    for change in 0..<commits {
      // Spread over all rows, whatever their number, and in an order in which each passes some others.
      let number = change * 7927 % count
      places[number] = (places[number] + span / 2) % span
      let operation: Operation
      switch subject {
      case .sorted:
        operation = .set(bench.employees[number], keyPath: "salary", .integer(Int64(places[number])))
      case .filteredThroughToOne:
        operation = .set(bench.employees[number], keyPath: "department", .reference(bench.departments[places[number]]))
      }
      moves += try bench.commit(operation)
    }
    let elapsed = MonotonicClock.now() - start
    try check(moves, isWatched ? commits : 0)
    return Double(elapsed) / Double(commits)
  }

  private func words(_ subject: Moving) -> Query.Words {
    var words = Query.Words(entity: "Employee")
    words.sort = "salary"
    words.keys = ["salary", "department"]
    if subject == .filteredThroughToOne {
      words.filter = "department.budget > 0"
      words.sort = "department.name,salary"
    }
    return words
  }

  // MARK: Queries that are not touched

  /// Nanoseconds for one commit beside so many queries that it does not touch.
  private func time(_ subject: Untouched, queries count: Int) throws -> Double {
    var bench = try QueryBenchModel(employees: Self.bystanderCount, departments: 1)
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
      try bench.watch(words, watcher: UInt64(number))
    }
    var moves = 0
    let start = MonotonicClock.now()
    for change in 0..<commits {
      let employee = bench.employees[change % Self.bystanderCount]
      switch subject {
      case .otherValues:
        let state = change / Self.bystanderCount % 2 == 0 ? "here" : "there"
        moves += try bench.commit(.set(employee, keyPath: "state", .string(state)))
      case .otherRanges, .otherKeys:
        moves += try bench.commit(.set(employee, keyPath: "salary", .integer(Int64(change))))
      }
    }
    let elapsed = MonotonicClock.now() - start
    try check(moves, 0)
    return Double(elapsed) / Double(commits)
  }

  private func check(_ heard: Int, _ wanted: Int) throws {
    guard heard == wanted else { throw ModelBenchmarkError.unheard(wanted: wanted, heard: heard) }
  }
}
