/// A schema with a collection of each kind.
enum CollectionSchema {
  static let yaml = """
    entities:
      Company:
        keys:
          main: {toOne: Department}
          departments: {toMany: Department}
          total: {type: number, computed: "departments.@sum.total"}
          variety: {computed: departments.@sum.variety}
          staff: {computed: departments.@unionOfArrays.employees}
      Department:
        keys:
          name: {type: string}
          employees: {toMany: Employee, ordered: true, inverse: department}
          calm: {toMany: Employee, ordered: true, notifies: changed}
          mute: {toMany: Employee, ordered: true, notifies: manual}
          tags: {toMany: string}
          ranks: {toMany: integer, ordered: true}
          projects: {toMany: Project, inverse: departments}
          total: {type: number, computed: "employees.@sum.salary"}
          size: {type: integer, computed: "employees.@count"}
          calmSize: {type: integer, computed: "employees.@count", notifies: changed}
          calmTotal: {type: number, computed: "employees.@sum.salary", notifies: changed}
          salaries: {computed: employees.salary}
          pay: {computed: employees.@unionOfObjects.salary}
          paySum: {computed: pay.@sum.self}
          loads: {computed: employees.@distinctUnionOfObjects.load}
          variety: {computed: loads.@count}
      Employee:
        keys:
          name: {type: string}
          salary: {type: number}
          hired: {type: date}
          department: {toOne: Department, inverse: employees}
          friends: {toMany: Employee, ordered: true, inverse: friends}
          boss: {toOne: Employee, inverse: reports}
          reports: {toMany: Employee, ordered: true, inverse: boss}
          load: {type: number, computed: reports.@sum.salary}
      Project:
        keys:
          departments: {toMany: Department, ordered: true, inverse: projects}
    """

  /// Department/1 has Employee/1 and /2, Department/2 has Employee/3; Employee/4 and /5 are free.
  static func fixture() throws -> Fixture {
    try Fixture(
      yaml, #"create Department/1 {"tags":["a","b"],"ranks":[1,2,3]}"#, "create Department/2 {}",
      #"create Employee/1 {"salary":10,"department":"Department/1"}"#,
      #"create Employee/2 {"salary":20,"department":"Department/1"}"#,
      #"create Employee/3 {"salary":30,"department":"Department/2"}"#,
      #"create Employee/4 {"salary":40}"#, #"create Employee/5 {"salary":50}"#,
      #"create Company/1 {"main":"Department/1","departments":["Department/1","Department/2"]}"#)
  }
}
