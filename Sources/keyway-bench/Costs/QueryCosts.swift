import KeyValueModel
import KeyValueObserving

/// Times what live queries in this process add to a commit. Builds its models anew for each figure.
struct QueryCosts {
  let commits: Int
  let rounds: Int
  let rowCounts: [Int]
  let queryCounts: [Int]
  let streamCounts: [Int]

  /// A query whose rows are moved one by one.
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

  /// How many departments the employees are spread over.
  private static let departmentCount = 100
  /// How many employees there are where no query is touched.
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

  /// Nanoseconds for one commit that moves one of so many rows over about half of the others.
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
      // Spread over all rows, whatever their number, and in an order in which each passes some others.
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

  /// Nanoseconds for one commit beside so many queries that it does not touch.
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
