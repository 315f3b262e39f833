/// The data of the tests of to-manys: all four kinds of them.
enum CollectionFixture {
  static let schema = """
    entities:
      Employee:
        keys:
          name: { type: string }
          salary: { type: number }
          department: { toOne: Department, inverse: employees }
          friends: { toMany: Employee }
          badge: { toOne: Badge, inverse: bearer }
      Manager:
        extends: Employee
        keys:
          bonus: { type: number }
      Badge:
        keys:
          bearer: { toOne: Employee, inverse: badge, optional: false }
      Department:
        keys:
          name: { type: string }
          employees: { toMany: Employee, ordered: true, inverse: department }
          marks: { toMany: integer, ordered: true, maximum: 100 }
          tags: { toMany: string, minLength: 1 }
          notes: { toMany: json, ordered: true }
          head: { toOne: Employee }
          info: { type: json }
          total: { type: number, computed: employees.@sum.salary }
    """

  static let objects = [
    ("Department/1", #"{"name":"Engines","marks":[10,20,30],"tags":["b","a"]}"#),
    ("Department/2", #"{"name":"Looms"}"#),
    ("Employee/1", #"{"name":"Ada","salary":100,"department":"Department/1"}"#),
    ("Employee/2", #"{"name":"Bob","salary":200,"department":"Department/1"}"#),
    ("Employee/3", #"{"name":"Cyd","salary":300,"department":"Department/1"}"#),
    ("Employee/4", #"{"name":"Dan","salary":400}"#),
    ("Manager/1", #"{"name":"Eve","salary":500}"#),
  ]

  static func server() throws -> TestServer { try TestServer(schema: schema, objects: objects) }
}
