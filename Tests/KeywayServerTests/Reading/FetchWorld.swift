import KeyValueModel
import TestKit

/// The data of the tests of filters and sort orders: random people, staff and departments. Their values are read one by
/// one, so that a test can filter and sort them itself.
struct FetchWorld {
  static let schema = """
    entities:
      Person:
        keys:
          name: { type: string }
          born: { type: date }
          info: { type: json }
          nickname: { type: string, computed: "name + '!'" }
      Employee:
        extends: Person
        keys:
          salary: { type: number }
          level: { type: integer }
          active: { type: boolean }
          department: { toOne: Department, inverse: employees }
          boss: { toOne: Person }
          doubled: { type: number, computed: "salary * 2.0" }
      Manager:
        extends: Employee
        keys:
          bonus: { type: number, default: 5 }
      Department:
        keys:
          name: { type: string }
          city: { type: string }
          employees: { toMany: Employee, ordered: true, inverse: department }
          words: { toMany: string }
          head: { toOne: Employee }
          totalSalary: { type: number, computed: employees.@sum.salary }
          staff: { type: integer, computed: "size(employees)" }
    """

  /// The texts of dates, and their seconds since 1970; some are the same moment.
  static let dates: [(text: String, seconds: Int)] = [
    ("1970-01-01", 0), ("1970-01-01T01:00:00+01:00", 0), ("1969-12-31T23:59:59Z", -1), ("2000-01-01", 946_684_800),
    ("1999-12-31T19:00:00-05:00", 946_684_800), ("2000-01-01T00:00:01Z", 946_684_801),
  ]

  /// Returns the moment of one of the dates.
  static func seconds(_ date: Value) -> Int? { dates.first { $0.text == date.text }?.seconds }

  let server: TestServer
  /// Every object by its reference.
  private(set) var objects: [String: Value] = [:]

  /// Creates a server with random objects.
  init(seed: UInt64, people: Int = 10, employees: Int = 30, departments: Int = 6) throws {
    server = try TestServer(schema: Self.schema, objects: [])
    var random = SplitMix64(seed: seed)
    var operations: [String] = []
    let departmentNames = (0..<departments).map { "Department/\($0)" }
    for name in departmentNames {
      operations.append(Self.create(name, Self.department(&random)))
    }
    for index in 0..<people { operations.append(Self.create("Person/\(index)", Self.person(&random))) }
    var staff: [String] = []
    for index in 0..<employees {
      let reference = "\(Bool.random(using: &random) ? "Employee" : "Manager")/\(index)"
      var members = Self.person(&random) + Self.employee(&random)
      members.append(("department", Self.text(departmentNames, &random)))
      members.append(("boss", Self.text(staff + ["Person/0", "Person/1"], &random)))
      operations.append(Self.create(reference, members))
      staff.append(reference)
    }
    for name in departmentNames {
      operations.append(#"{"op":"set","object":"\#(name)","keyPath":"head","value":\#(Self.text(staff, &random))}"#)
    }
    try server.client.must(
      "POST", "/v1/transactions", body: "{\"operations\":[\(operations.joined(separator: ","))]}")
    try read()
  }

  /// Reads every object again.
  mutating func read() throws {
    objects = [:]
    for object in try server.client.json("/v1/objects")["objects"].items {
      if let reference = object["@ref"].text { objects[reference] = object }
    }
  }

  /// Returns the object that a to-one or a reference names; null if it is null.
  func object(_ reference: Value) -> Value { reference.text.flatMap { objects[$0] } ?? .null }

  /// Returns the references of some entities, in order.
  func references(_ entities: [String]) -> [String] {
    objects.keys.filter { reference in entities.contains { reference.hasPrefix($0 + "/") } }
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// Returns the references in a fetch.
  func fetch(_ entity: String, filter: String? = nil, sort: String? = nil) throws -> [String] {
    var target = "/v1/objects/\(entity)?keys=name"
    if let filter { target += "&filter=" + filter.queryEncoded }
    if let sort { target += "&sort=" + sort.queryEncoded }
    let answer = try server.client.json(target)
    let references = answer["objects"].items.compactMap { $0["@ref"].text }
    guard answer["count"].whole == references.count else { return ["count: \(answer["count"])"] }
    return references
  }

  // MARK: Random objects

  private typealias Members = [(String, String)]

  private static func create(_ reference: String, _ members: Members) -> String {
    let value = members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",")
    return #"{"op":"create","object":"\#(reference)","value":{\#(value)}}"#
  }

  private static func text(_ choices: [String], _ random: inout SplitMix64) -> String {
    pick(choices.map { "\"\($0)\"" } + ["null"], &random)
  }

  private static func pick(_ choices: [String], _ random: inout SplitMix64) -> String {
    choices.randomElement(using: &random) ?? "null"
  }

  private static func person(_ random: inout SplitMix64) -> Members {
    [
      ("name", text(["Ada", "Bob", "ada", "Zoë", "日本", ""], &random)), ("born", text(dates.map(\.text), &random)),
      (
        "info",
        pick(
          ["null", "1", "1.0", "\"x\"", #"{"a":1}"#, #"{"a":2.5,"tags":["x","y"]}"#, #"{"tags":[]}"#, "[1]"], &random)
      ),
    ]
  }

  private static func employee(_ random: inout SplitMix64) -> Members {
    [
      ("salary", pick(["null", "0", "100", "100.5", "300", "1e3"], &random)),
      ("level", pick(["null", "1", "2", "9007199254740993"], &random)),
      ("active", pick(["null", "true", "false"], &random)),
    ]
  }

  private static func department(_ random: inout SplitMix64) -> Members {
    [
      ("name", text(["Engines", "Looms", "Mills"], &random)), ("city", text(["London", "Paris"], &random)),
      ("words", pick(["[]", #"["a"]"#, #"["a","b"]"#], &random)),
    ]
  }
}

extension String {
  /// The text as a value in a URL's query: every byte with another meaning is escaped.
  var queryEncoded: String {
    utf8.map { byte in
      let scalar = Unicode.Scalar(byte)
      if scalar.isASCII, scalar.properties.isAlphabetic || (0x30...0x39).contains(byte) { return String(scalar) }
      let digits = String(byte, radix: 16, uppercase: true)
      return "%" + (digits.count < 2 ? "0" : "") + digits
    }.joined()
  }
}
