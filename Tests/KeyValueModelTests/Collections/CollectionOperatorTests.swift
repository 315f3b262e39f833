import KeyValueModel
import Testing

@Suite("Collection operators")
struct CollectionOperatorTests {
  static let schema = """
    entities:
      Company:
        keys:
          departments: {toMany: Department, ordered: true}
          firstDepartment: {toOne: Department}
          allPay: {computed: departments.employees}
          heads: {computed: departments.head}
      Department:
        keys:
          head: {toOne: Employee}
          parent: {toOne: Department}
          employees: {toMany: Employee, ordered: true, inverse: department}
          marks: {toMany: integer, ordered: true}
          rates: {toMany: number}
          total: {type: number, computed: employees.@sum.salary}
          crew: {computed: parent.employees}
          names: {computed: employees.name}
      Employee:
        keys:
          name: {type: string}
          salary: {type: number}
          level: {type: integer}
          hired: {type: date}
          extra: {type: json}
          active: {type: boolean}
          department: {toOne: Department, inverse: employees}
          boss: {toOne: Employee}
          bossSalary: {computed: boss.salary}
          tags: {toMany: string, ordered: true}
          teams: {toMany: Team, ordered: true}
      Team: {keys: {title: {type: string}}}
      Boss: {extends: Employee, keys: {bonus: {type: number}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    for id in 1...3 { try fixture.create("Department/\(id)") }
    try fixture.create("Team/1", #"{"title":"red"}"#)
    try fixture.create("Team/2", #"{"title":"blue"}"#)
    let people = [
      #"{"name":"b","salary":30,"level":3,"hired":"2020-01-01T10:00:00+05:00","tags":["x","y"],"#
        + #""teams":["Team/1","Team/2"]}"#,
      #"{"name":"a","salary":10,"level":1,"hired":"2020-01-01T06:00:00Z","tags":["y"],"teams":["Team/2"]}"#,
      #"{"name":"B","level":2,"tags":["x","z"],"boss":"Employee/1"}"#, #"{"salary":30,"boss":"Employee/2"}"#,
    ]
    for (position, text) in people.enumerated() { try fixture.create("Employee/\(position + 1)", text) }
    try fixture.create("Boss/1", #"{"name":"z","salary":7.5,"department":"Department/2"}"#)
    try fixture.set("Department/1", "employees", #"["Employee/1","Employee/2","Employee/3","Employee/4"]"#)
    try fixture.patch("Department/1", #"{"marks":[5,2,9],"rates":[1.5,-2],"head":"Employee/1"}"#)
    try fixture.patch("Department/2", #"{"parent":"Department/1","head":"Boss/1"}"#)
    try fixture.create(
      "Company/1", #"{"departments":["Department/1","Department/2","Department/3"],"firstDepartment":"Department/1"}"#)
    try fixture.create("Company/2")
  }

  @Test(
    "Each operator gives what Foundation's guide says, nulls counting as the specification says",
    arguments: [
      ("employees.@count", "4"), ("employees.@sum.salary", "70"), ("employees.@avg.salary", "17.5"),
      ("employees.@min.salary", "10"), ("employees.@max.salary", "30"), ("employees.@sum.level", "6"),
      ("employees.@avg.level", "1.5"), ("employees.@min.level", "1"), ("employees.@max.level", "3"),
      ("employees.@min.name", #""B""#), ("employees.@max.name", #""b""#),
      ("employees.@unionOfObjects.salary", "[30,10,30]"), ("employees.@distinctUnionOfObjects.salary", "[30,10]"),
      ("employees.@unionOfArrays.tags", #"["x","y","y","x","z"]"#),
      ("employees.@distinctUnionOfArrays.tags", #"["x","y","z"]"#),
      ("employees.@unionOfArrays.teams", #"["Team/1","Team/2","Team/2"]"#),
      ("employees.@distinctUnionOfArrays.teams", #"["Team/1","Team/2"]"#),
      ("employees.@distinctUnionOfArrays.teams.title", #"["red","blue"]"#),
    ])
  func operators(path: String, result: String) throws {
    #expect(try fixture.value("Department/1", path) == result)
  }

  @Test("The least and the greatest date are so by instant, not by text")
  func dates() throws {
    #expect(try fixture.value("Department/1", "employees.@min.hired") == #""2020-01-01T10:00:00+05:00""#)
    #expect(try fixture.value("Department/1", "employees.@max.hired") == #""2020-01-01T06:00:00Z""#)
  }

  @Test(
    "Of no members the sum is 0, the count too, the unions are empty, and everything else is null",
    arguments: [
      ("@count", "0"), ("@sum.salary", "0"), ("@sum.level", "0"), ("@avg.salary", "null"), ("@min.salary", "null"),
      ("@max.hired", "null"), ("@unionOfObjects.name", "[]"), ("@distinctUnionOfObjects.name", "[]"),
      ("@unionOfArrays.tags", "[]"), ("@distinctUnionOfArrays.tags", "[]"),
    ])
  func empty(path: String, result: String) throws {
    #expect(try fixture.value("Department/3", "employees.\(path)") == result)
  }

  @Test("Of nulls alone the least is null, the sum and the average are 0, and unions drop them")
  mutating func nulls() throws {
    try fixture.set("Department/3", "employees", #"["Employee/3"]"#)
    let results = try ["@count", "@sum.salary", "@avg.salary", "@min.salary", "@max.hired", "@unionOfObjects.salary"]
      .map { try fixture.value("Department/3", "employees.\($0)") }
    #expect(results == ["1", "0", "0", "null", "null", "[]"])
  }

  @Test(
    "The paths before and after an operator may lead through to-ones and computed keys",
    arguments: [
      ("Department/1", "employees.@sum.boss.salary", "40"), ("Department/1", "employees.@max.bossSalary", "30"),
      ("Department/1", "employees.@unionOfObjects.boss.name", #"["b","a"]"#),
      ("Department/1", "employees.@distinctUnionOfObjects.department", #"["Department/1"]"#),
      ("Department/2", "parent.employees.@count", "4"), ("Department/2", "parent.total", "70"),
      ("Department/2", "crew.@sum.salary", "70"), ("Department/2", "crew.@count", "4"),
      ("Department/2", "employees.@sum.salary", "7.5"), ("Company/1", "departments.@sum.total", "77.5"),
      ("Company/1", "departments.@max.total", "70"), ("Company/1", "departments.@unionOfObjects.total", "[70,7.5,0]"),
      ("Company/1", "firstDepartment.employees.@avg.level", "1.5"),
    ])
  func nested(object: String, path: String, result: String) throws {
    #expect(try fixture.value(object, path) == result)
  }

  @Test(
    "`self` is the member itself",
    arguments: [
      ("marks.@sum.self", "16"), ("marks.@avg.self", "5.333333333333333"), ("marks.@min.self", "2"),
      ("marks.@max.self", "9"), ("marks.@count", "3"), ("marks.@unionOfObjects.self", "[5,2,9]"),
      ("rates.@sum.self", "-0.5"),
      ("employees.@unionOfObjects.self", #"["Employee/1","Employee/2","Employee/3","Employee/4"]"#),
      ("names.@max.self", #""b""#), ("names.@count", "4"),
    ])
  func itself(path: String, result: String) throws {
    #expect(try fixture.value("Department/1", path) == result)
  }

  @Test(
    "Behind a collection the value is the array of the members' values, and operators take arrays of arrays",
    arguments: [
      ("departments.total", "[70,7.5,0]"), ("departments.head", #"["Employee/1","Boss/1",null]"#),
      ("departments.head.name", #"["b","z",null]"#),
      ("departments.employees.name", #"[["b","a","B",null],["z"],[]]"#), ("departments.marks", "[[5,2,9],[],[]]"),
      ("departments.employees.teams.title", #"[[["red","blue"],["blue"],[],[]],[[]],[]]"#),
      ("departments.head.@count", "3"), ("departments.head.@sum.salary", "37.5"),
      ("departments.head.@avg.salary", "12.5"), ("departments.head.@min.salary", "7.5"),
      ("heads.@sum.salary", "37.5"), ("departments.employees.@count", "3"),
      ("departments.@unionOfArrays.employees.name", #"["b","a","B","z"]"#),
      ("departments.@unionOfArrays.marks", "[5,2,9]"),
      ("departments.employees.@unionOfArrays.name", #"["b","a","B","z"]"#),
      ("departments.employees.@distinctUnionOfArrays.salary", "[30,10,7.5]"),
      ("departments.employees.@unionOfArrays.self", #"["Employee/1","Employee/2","Employee/3","Employee/4","Boss/1"]"#),
      ("allPay.@distinctUnionOfArrays.salary", "[30,10,7.5]"), ("departments.marks.@unionOfArrays.self", "[5,2,9]"),
    ])
  func arraysOfArrays(path: String, result: String) throws {
    #expect(try fixture.value("Company/1", path) == result)
  }

  @Test(
    "A null on the way to the collection makes the value null, whatever the operator",
    arguments: [
      ("Company/2", "firstDepartment.employees"), ("Company/2", "firstDepartment.employees.@count"),
      ("Company/2", "firstDepartment.employees.@sum.salary"), ("Company/2", "firstDepartment.employees.@avg.salary"),
      ("Company/2", "firstDepartment.employees.@unionOfObjects.salary"), ("Department/1", "crew"),
      ("Department/1", "crew.@count"), ("Department/1", "crew.@sum.salary"),

    ])
  func nullMiddle(object: String, path: String) throws {
    #expect(try fixture.value(object, path) == "null")
  }

  @Test(
    "Operators that cannot be are refused by what is wrong with them",
    arguments: [
      ("@count", ModelError.Code.malformedKeyPath), ("@sum.salary", .malformedKeyPath),
      ("employees.@sum", .malformedKeyPath), ("employees.@count.salary", .malformedKeyPath),
      ("employees.@median.salary", .malformedKeyPath), ("employees.@Sum.salary", .malformedKeyPath),
      ("employees.@", .malformedKeyPath), ("employees.@sum.@count", .malformedKeyPath),
      ("employees.@unionOfArrays.teams.@count", .malformedKeyPath), ("employees..@count", .malformedKeyPath),
      ("head.@count", .notACollection), ("total.@sum.self", .notACollection), ("head.name.@max.self", .notACollection),
      ("employees.@unionOfArrays.name", .notACollection), ("employees.@distinctUnionOfArrays.boss", .notACollection),
      ("employees.@unionOfArrays.extra", .notACollection), ("employees.@sum.wage", .undefinedKey),
      ("employees.@sum.salary.x", .undefinedKey), ("staff.@count", .undefinedKey), ("marks.@sum.x", .undefinedKey),
      ("employees.@max.bonus", .undefinedKey), ("employees.@unionOfObjects.extra.x", .undefinedKey),
      ("employees.@unionOfArrays.tags.x", .undefinedKey), ("names.x", .undefinedKey),
      ("crew.name", .undefinedKey),
      ("employees.@sum.name", .invalidValue), ("employees.@avg.hired", .invalidValue),
      ("employees.@sum.extra", .invalidValue), ("employees.@min.active", .invalidValue),
      ("employees.@max.extra", .invalidValue), ("employees.@max.boss", .invalidValue),
      ("employees.@sum.self", .invalidValue), ("employees.@sum.teams", .invalidValue),
      ("employees.@max.tags", .invalidValue),
    ])
  func refused(path: String, code: ModelError.Code) throws {
    let error = try #require(throws: ModelError.self) { try fixture.value("Department/1", path) }
    #expect((error.code, error.keyPath) == (code, path))
  }

  @Test(
    "A path that goes on behind a collection can be read but not observed, unless an operator ends it",
    arguments: [
      ("departments", true), ("departments.@count", true), ("departments.@sum.total", true),
      ("firstDepartment.employees", true), ("firstDepartment.employees.@max.boss.salary", true),
      ("departments.@unionOfArrays.employees", true), ("departments.head", false),
      ("departments.employees.name", false),
      ("departments.head.@count", false), ("departments.@unionOfArrays.employees.name", false), ("heads", true),
    ])
  func observing(path: String, isObservable: Bool) throws {
    let company = fixture.model.schema.entities[0]
    _ = try fixture.model.schema.resolve(path, from: company)
    if isObservable {
      #expect(try fixture.model.schema.resolveObservable(path, from: company).text == path)
    } else {
      let error = #expect(throws: ModelError.self) { try fixture.model.schema.resolveObservable(path, from: company) }
      #expect((error?.code, error?.keyPath) == (.unobservableKeyPath, path))
    }
  }

  @Test("Sums are exact in decimal and do not depend on the order, sums of integers exact beyond the range of a double")
  mutating func decimals() throws {
    try fixture.create("Department/9", #"{"rates":[0.1,0.2,1e100,-1e100],"marks":[9007199254740993,2]}"#)
    #expect(try fixture.value("Department/9", "marks.@sum.self") == "9007199254740995")
    let sum = try fixture.value("Department/9", "rates.@sum.self")
    let average = try fixture.value("Department/9", "rates.@avg.self")
    #expect((sum, average) == ("0.3", "0.075"))
  }

  @Test("The ETag of an operator's value is the latest of the objects that it read")
  mutating func revisions() throws {
    func latest(_ text: String) throws -> Revision {
      let path = try fixture.model.schema.resolve(text, from: fixture.model.schema.entities[1])
      return fixture.model.state.revision(of: try ref("Department/1"), along: path)
    }
    try fixture.set("Employee/3", "salary", "1")
    let revision = fixture.model.revision
    #expect(try latest("employees.@sum.salary") == revision)
    #expect(try latest("total") == revision)
    #expect(fixture.model.state.revision(of: try ref("Department/1")) == revision)
    #expect(try latest("employees.@count") < revision)
  }
}
