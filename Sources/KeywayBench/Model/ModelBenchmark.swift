import KeyValueModel
import KeyValueObserving

/// Times what observers in this process cost. Builds its models anew for each figure, so that none profits from another.
struct ModelBenchmark {
  let changes: Int
  let rounds: Int
  let memberCounts: [Int]
  let objectCounts: [Int]

  /// What is observed of a collection, and how it is made to change.
  enum Subject: String, CaseIterable {
    case sum = "employees.@sum.salary"
    case maximum = "employees.@max.salary"
    case count = "employees.@count"
    case computed = "payroll"
  }

  private static let schema = """
    entities:
      Employee:
        keys:
          salary:     { type: number, default: 0 }
          department: { toOne: Department, inverse: employees }
      Department:
        keys:
          employees: { toMany: Employee, ordered: true, inverse: department }
          payroll:   { type: number, computed: "sum(employees.map(e, e.salary * 1.25))" }
    """

  func run() throws -> ModelBenchmarkReport {
    var report = ModelBenchmarkReport()
    for count in objectCounts {
      report.settings.append(.init(count: count, nanoseconds: try best { try timeSetting(among: count) }))
    }
    for subject in Subject.allCases {
      let figures = try memberCounts.map { count in
        ModelBenchmarkReport.Figure(count: count, nanoseconds: try best { try time(subject, members: count) })
      }
      report.growth.append(.init(subject: subject.rawValue, figures: figures))
    }
    return report
  }

  private func best(_ measure: () throws -> Double) throws -> Double {
    var best = try measure()
    for _ in 1..<max(rounds, 2) { best = min(best, try measure()) }
    return best
  }

  /// Nanoseconds for setting one attribute that one observer follows.
  private func timeSetting(among count: Int) throws -> Double {
    let bench = try model(employees: count, inDepartment: false)
    var heard = 0
    for number in 0..<count {
      _ = try bench.model.observe(bench.employee(number), ["salary"], options: [.new]) { _ in heard += 1 }
      // One observer each for as many objects as are set.
      if number == min(count, changes) - 1 { break }
    }
    let observed = min(count, changes)
    let start = MonotonicClock.now()
    for change in 0..<changes {
      try bench.model.set(bench.employee(change % observed), forKeyPath: "salary", to: .number(Double(change)))
    }
    let elapsed = MonotonicClock.now() - start
    try check(heard, changes)
    return Double(elapsed) / Double(changes)
  }

  /// Nanoseconds for one change of what is observed.
  private func time(_ subject: Subject, members: Int) throws -> Double {
    let bench = try model(employees: members, inDepartment: true)
    var heard = 0
    _ = try bench.model.observe(bench.department, [subject.rawValue], options: [.new, .old]) { _ in heard += 1 }
    // Spread over all members, whatever their number.
    let stride = max(1, members / 97)
    let start = MonotonicClock.now()
    for change in 0..<changes {
      let employee = bench.employee(change / 2 * stride % members)
      if subject == .count {
        let value: Value = change.isMultiple(of: 2) ? .null : .reference(bench.department)
        try bench.model.set(employee, forKeyPath: "department", to: value)
      } else {
        try bench.model.set(employee, forKeyPath: "salary", to: .number(Double(change % 1009) + 0.25))
      }
    }
    let elapsed = MonotonicClock.now() - start
    try check(heard, changes)
    return Double(elapsed) / Double(changes)
  }

  private func check(_ heard: Int, _ wanted: Int) throws {
    guard heard == wanted else { throw ModelBenchmarkError.unheard(wanted: wanted, heard: heard) }
  }

  // MARK: The model

  private struct Bench {
    let model: ObservableModel
    let department: Reference
    let employees: [Reference]

    func employee(_ number: Int) -> Reference { employees[number] }
  }

  private func model(employees count: Int, inDepartment: Bool) throws -> Bench {
    let model = ObservableModel(schema: try Schema(yaml: Self.schema))
    let department = try reference("Department", 1)
    let employees = try (0..<count).map { try reference("Employee", $0) }
    try model.commit(Transaction([.create(department, [:])]))
    let batch = 10_000
    for start in Swift.stride(from: 0, to: count, by: batch) {
      let operations = (start..<min(start + batch, count)).map { number in
        var body: JSONObject = ["salary": .number(Double(number % 4001))]
        if inDepartment { body["department"] = .reference(department) }
        return Operation.create(employees[number], body)
      }
      try model.commit(Transaction(operations))
    }
    return Bench(model: model, department: department, employees: employees)
  }

  private func reference(_ entity: String, _ number: Int) throws -> Reference {
    guard let reference = Reference(entity: entity, id: String(number)) else {
      throw ModelBenchmarkError.unheard(wanted: 0, heard: 0)
    }
    return reference
  }
}

/// The benchmark cannot be trusted.
enum ModelBenchmarkError: Error, CustomStringConvertible {
  /// The observer was not told of each change exactly once.
  case unheard(wanted: Int, heard: Int)

  var description: String {
    switch self {
    case .unheard(let wanted, let heard): "the observer was told of \(heard) changes instead of \(wanted)"
    }
  }
}
