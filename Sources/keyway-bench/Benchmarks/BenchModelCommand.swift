import ArgumentParser
import KeyValueModel
import KeyValueObserving

/// `keyway-bench model`: the cost of the model and its observers, in this process, without a server.
struct BenchModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model",
    abstract: "Measures sets and observed changes in this process, and how the times grow with the members.",
    discussion: """
      First sets an attribute that has one observer, among few objects and among many. Then changes observed collection
      operators and a computed key over collections of 10, 1,000 and 100,000 members, in several rounds, of which the
      best counts. The ratio is that of the largest collection to the smallest.
      """)

  @Option(help: "The number of changes for each figure.")
  var changes = 20_000

  @Option(help: "The number of rounds; the best counts.")
  var rounds = 3

  @Option(help: "The sizes of the collections, separated by commas.")
  var members = NumberList(10, 1000, 100_000)

  @Option(help: "The numbers of objects among which one is set, separated by commas.")
  var objects = NumberList(1000, 1_000_000)

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([("--changes", changes, 100...10_000_000), ("--rounds", rounds, 1...100)])
    try members.check("--members", 1...5_000_000)
    try objects.check("--objects", 1...5_000_000)
  }

  func run() throws {
    try report.show(
      try ModelCosts(
        changes: changes, rounds: rounds, memberCounts: members.numbers, objectCounts: objects.numbers
      ).report())
  }
}

/// Measures the cost of observers in this process. Creates new models for each figure, so that none benefits from
/// another.
private struct ModelCosts {
  let changes: Int
  let rounds: Int
  let memberCounts: [Int]
  let objectCounts: [Int]

  /// The observed key path of a collection, and the way in which it is changed.
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

  /// Measures everything.
  func report() throws -> CostReport {
    var report = CostReport()
    for count in objectCounts {
      let best = try CostMeasurement.best(of: rounds) { try timeSetting(among: count) }
      report.settings.append(.init(count: count, nanoseconds: best))
    }
    for subject in Subject.allCases {
      let figures = try memberCounts.map { count in
        CostReport.Cost(
          count: count, nanoseconds: try CostMeasurement.best(of: rounds) { try time(subject, members: count) })
      }
      report.growth.append(.init(subject: subject.rawValue, unit: "members", figures: figures))
    }
    return report
  }

  /// Returns the nanoseconds for setting one attribute that has one observer.
  private func timeSetting(among count: Int) throws -> Double {
    let (model, _, employees) = try makeModel(employees: count, inDepartment: false)
    var heard = 0
    // Each object that is set has one observer.
    let observed = min(count, changes)
    for employee in employees.prefix(observed) {
      _ = try model.observe(employee, ["salary"], options: [.new]) { _ in heard += 1 }
    }
    return try CostMeasurement.nanoseconds(each: changes, notifications: changes) { change in
      heard = 0
      try model.set(employees[change % observed], forKeyPath: "salary", to: .number(Double(change)))
      return heard
    }
  }

  /// Returns the nanoseconds for one change of the observed key path.
  private func time(_ subject: Subject, members: Int) throws -> Double {
    let (model, department, employees) = try makeModel(employees: members, inDepartment: true)
    var heard = 0
    _ = try model.observe(department, [subject.rawValue], options: [.new, .old]) { _ in heard += 1 }
    // Spread the changes over all members, whatever their number.
    let stride = max(1, members / 97)
    return try CostMeasurement.nanoseconds(each: changes, notifications: changes) { change in
      heard = 0
      let employee = employees[change / 2 * stride % members]
      if subject == .count {
        let value: Value = change.isMultiple(of: 2) ? .null : .reference(department)
        try model.set(employee, forKeyPath: "department", to: value)
      } else {
        try model.set(employee, forKeyPath: "salary", to: .number(Double(change % 1009) + 0.25))
      }
      return heard
    }
  }

  private func makeModel(
    employees count: Int, inDepartment: Bool
  ) throws -> (model: ObservableModel, department: Reference, employees: [Reference]) {
    let model = ObservableModel(schema: try Schema(yaml: Self.schema))
    let department = try Reference.numbered("Department", 1)
    let employees = try (0..<count).map { try Reference.numbered("Employee", $0) }
    try model.commit(Transaction([.create(department, [:])]))
    let creations = CostMeasurement.creations(of: count) { number in
      var body: JSONObject = ["salary": .number(Double(number % 4001))]
      if inDepartment { body["department"] = .reference(department) }
      return .create(employees[number], body)
    }
    for transaction in creations { try model.commit(transaction) }
    return (model, department, employees)
  }
}
