import KeyValueModel
import KeyValueObserving

/// A model of employees with live queries over them.
struct EmployeeModel {
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

  /// A model with so many objects.
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

  /// The number of the department that an employee begins in: few employees are spread over all of them too.
  static func department(of employee: Int, among count: Int) -> Int {
    count < 100 ? employee * 100 / count : employee % 100
  }

  /// How many teams the employees are in.
  static let teamCount = 10

  /// The team that an employee begins in.
  static func team(of employee: Int) -> Int { employee % teamCount }

  /// Adds a watcher of a query.
  mutating func watch(_ words: Query.Words, watcher: UInt64) throws {
    let query = try LiveQuery(Query(words, in: model.schema), in: model.state, costLimit: .max)
    live.add(query, observer: QueryObserver(id: ObserverID(watcher), cell: nil))
  }

  /// Commits an operation and updates the queries; gives how many rows move.
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
