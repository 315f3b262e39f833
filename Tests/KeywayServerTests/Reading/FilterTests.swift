import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Filters of fetches")
struct FilterTests {
  /// A filter, and the same condition in Swift: nil if it fails, which does not match.
  struct Case: Sendable, CustomTestStringConvertible {
    let entity: String
    let filter: String
    let meets: @Sendable (Value, FetchWorld) -> Bool?

    init(_ entity: String, _ filter: String, _ meets: @escaping @Sendable (Value, FetchWorld) -> Bool?) {
      (self.entity, self.filter, self.meets) = (entity, filter, meets)
    }

    var testDescription: String { "\(entity): \(filter)" }
  }

  private static let families = [
    "Person": ["Person", "Employee", "Manager"], "Employee": ["Employee", "Manager"], "Manager": ["Manager"],
    "Department": ["Department"],
  ]

  private static func double(_ value: Value, _ condition: (Double) -> Bool) -> Bool? { value.double.map(condition) }

  private static func born(_ value: Value, _ condition: (Int) -> Bool) -> Bool? {
    FetchWorld.seconds(value["born"]).map(condition)
  }

  private static func members(_ department: Value, _ world: FetchWorld) -> [Value] {
    department["employees"].items.map { world.object($0) }
  }

  static let attributes = [
    Case("Employee", "salary > 100.0") { object, _ in double(object["salary"]) { $0 > 100 } },
    Case("Employee", "salary >= 100") { object, _ in double(object["salary"]) { $0 >= 100 } },
    Case("Employee", "100.5 == salary") { object, _ in object["salary"].double == 100.5 },
    Case("Employee", "salary != 300.0") { object, _ in object["salary"].double != 300 },
    Case("Employee", "!(salary > 100.0)") { object, _ in double(object["salary"]) { !($0 > 100) } },
    Case("Employee", "salary in [0.0, 300.0]") { object, _ in [0, 300].contains(object["salary"].double) },
    Case("Employee", "level == 9007199254740993") { object, _ in object["level"].whole == 9_007_199_254_740_993 },
    // An integer and a double are compared as doubles.
    Case("Employee", "level == 9007199254740992.0") { object, _ in object["level"].whole == 9_007_199_254_740_993 },
    Case("Employee", "level < 2") { object, _ in object["level"].whole.map { $0 < 2 } },
    Case("Employee", "active") { object, _ in object["active"] == .bool(true) },
    Case("Employee", "!active") { object, _ in object["active"] == .bool(false) },
    Case("Employee", "this.active") { object, _ in object["active"] == .bool(true) },
    Case("Person", "name == 'ada'") { object, _ in object["name"].text == "ada" },
    Case("Person", "name < 'a'") { object, _ in
      object["name"].text.map { $0.utf8.lexicographicallyPrecedes("a".utf8) }
    },
    Case("Person", "name.startsWith('A') || name.endsWith('b')") { object, _ in
      object["name"].text.map { $0.hasPrefix("A") || $0.hasSuffix("b") }
    },
    Case("Person", "size(name) == 3") { object, _ in object["name"].text.map { $0.unicodeScalars.count == 3 } },
    Case("Person", "name.matches('^[A-Z]')") { object, _ in
      object["name"].text.map { ("A"..."Z").contains($0.prefix(1)) }
    },
    Case("Person", "name.contains('日') || name == 'Zoë'") { object, _ in
      object["name"].text.map { ["日本", "Zoë"].contains($0) }
    },
  ]

  static let dates = [
    Case("Person", "born == timestamp('2000-01-01T00:00:00Z')") { object, _ in born(object) { $0 == 946_684_800 } },
    Case("Person", "born < timestamp('1970-01-01T00:00:00Z')") { object, _ in born(object) { $0 < 0 } },
    Case("Person", "born >= timestamp('2000-01-01T01:00:00+01:00')") { object, _ in
      born(object) { $0 >= 946_684_800 }
    },
    Case("Person", "born.getFullYear() == 2000") { object, _ in born(object) { $0 >= 946_684_800 } },
    Case("Person", "born + duration('1s') == timestamp(0)") { object, _ in born(object) { $0 == -1 } },
    Case("Person", "born == null") { object, _ in object["born"].isNull },
  ]

  static let nulls = [
    Case("Employee", "salary == null") { object, _ in object["salary"].isNull },
    Case("Employee", "salary == null || salary > 100.0") { object, _ in object["salary"].double.map { $0 > 100 } ?? true
    },
    Case("Employee", "salary > 100.0 || salary == null") { object, _ in object["salary"].double.map { $0 > 100 } ?? true
    },
    Case("Employee", "salary > 100.0 && level == 1") { object, _ in
      (object["salary"].double.map { $0 > 100 } ?? false) && object["level"].whole == 1
    },
    Case("Employee", "!(salary > 100.0 && level == 1)") { object, _ in
      object["level"].whole != 1 ? true : object["salary"].double.map { !($0 > 100) }
    },
    Case("Employee", "active == null ? level == 1 : active") { object, _ in
      object["active"].isNull ? object["level"].whole == 1 : object["active"] == .bool(true)
    },
    Case("Employee", "1 / (level - 1) == 1") { object, _ in object["level"].whole == 2 },
    Case("Employee", "has(this.salary)") { object, _ in !object["salary"].isNull },
  ]

  static let json = [
    Case("Person", "info == 1") { object, _ in object["info"].double == 1 },
    Case("Person", "info.a == 1") { object, _ in object["info"]["a"].double.map { $0 == 1 } },
    Case("Person", "info.a > 1.5") { object, _ in object["info"]["a"].double.map { $0 > 1.5 } },
    Case("Person", "has(info.tags)") { object, _ in object["info"].has("tags") },
    Case("Person", "info.tags.exists(t, t == 'y')") { object, _ in object["info"]["tags"].items.contains(.string("y"))
    },
    Case("Person", "'x' in info.tags") { object, _ in object["info"]["tags"].items.contains(.string("x")) },
    Case("Person", "type(info) == string") { object, _ in object["info"].text != nil },
    Case("Person", "info == {'a': 1.0}") { object, _ in object["info"].names == ["a"] && object["info"]["a"].whole == 1
    },
    Case("Person", "info == null") { object, _ in object["info"].isNull },
  ]

  static let toOnes = [
    Case("Employee", "department == 'Department/1'") { object, _ in object["department"].text == "Department/1" },
    Case("Employee", "department != 'Department/1'") { object, _ in object["department"].text != "Department/1" },
    Case("Employee", "'Department/404' == department") { _, _ in false },
    Case("Employee", "department in ['Department/1', 'Department/2']") { object, _ in
      ["Department/1", "Department/2"].contains(object["department"].text)
    },
    Case("Employee", "department == null") { object, _ in object["department"].isNull },
    Case("Employee", "department.name == 'Looms'") { object, world in
      object["department"].isNull ? nil : world.object(object["department"])["name"].text == "Looms"
    },
    Case("Employee", "department != null && department.city != 'Paris'") { object, world in
      !object["department"].isNull && world.object(object["department"])["city"].text != "Paris"
    },
    Case("Employee", "department.head == this") { object, world in
      object["department"].isNull
        ? nil : world.object(object["department"])["head"].text == object["@ref"].text
    },
    Case("Employee", "boss.name == name") { object, world in
      object["boss"].isNull ? nil : world.object(object["boss"])["name"] == object["name"]
    },
    Case("Manager", "bonus == 5.0 && boss == null") { object, _ in object["boss"].isNull },
  ]

  static let toManys = [
    Case("Department", "employees.exists(e, e.salary > 300.0)") { object, world in
      members(object, world).contains { $0["salary"].double.map { $0 > 300 } ?? false }
    },
    Case("Department", "employees.all(e, e.salary != null)") { object, world in
      members(object, world).allSatisfy { !$0["salary"].isNull }
    },
    Case("Department", "employees.exists_one(e, e.level == 1)") { object, world in
      members(object, world).count { $0["level"].whole == 1 } == 1
    },
    Case("Department", "employees.filter(e, e.active == true).size() > 1") { object, world in
      members(object, world).count { $0["active"] == .bool(true) } > 1
    },
    Case("Department", "size(employees) == 0") { object, _ in object["employees"].items.isEmpty },
    Case("Department", "head in employees") { object, _ in object["employees"].items.contains(object["head"]) },
    Case("Department", "employees.exists(e, e == 'Employee/3' || e == 'Manager/3')") { object, _ in
      object["employees"].items.contains { ["Employee/3", "Manager/3"].contains($0.text) }
    },
    Case("Department", "'b' in words && size(words) == 2") { object, _ in object["words"].items.count == 2 },
    Case("Department", "'a' in words") { object, _ in !object["words"].items.isEmpty },
    Case("Department", "'Department/1' in words || 'c' in words") { _, _ in false },
    Case("Department", "'Employee/3' in employees || 'Manager/3' in employees") { object, _ in
      object["employees"].items.contains { ["Employee/3", "Manager/3"].contains($0.text) }
    },
    Case("Department", "this in [head, employees[0].department]") { object, _ in !object["employees"].items.isEmpty },
    Case("Department", "sum(employees.map(e, e.salary)) >= 400.0") { object, world in
      members(object, world).reduce(0) { $0 + ($1["salary"].double ?? 0) } >= 400
    },
    Case("Employee", "department.employees.exists(e, e.salary > salary)") { object, world in
      guard !object["department"].isNull, let own = object["salary"].double else { return nil }
      let all = members(world.object(object["department"]), world).map { $0["salary"].double }
      return all.contains { $0.map { $0 > own } ?? false }
    },
  ]

  static let computed = [
    Case("Employee", "doubled > 200.0") { object, _ in double(object["salary"]) { $0 > 100 } },
    Case("Employee", "doubled == null") { object, _ in object["salary"].isNull },
    Case("Person", "nickname == 'Ada!'") { object, _ in object["name"].text == "Ada" },
    Case("Department", "totalSalary > 300.0 && staff > 1") { object, world in
      members(object, world).reduce(0) { $0 + ($1["salary"].double ?? 0) } > 300
        && object["employees"].items.count > 1
    },
    Case("Employee", "department.totalSalary < 301.0") { object, world in
      guard !object["department"].isNull else { return nil }
      return members(world.object(object["department"]), world).reduce(0) { $0 + ($1["salary"].double ?? 0) } < 301
    },
    Case("Person", "true") { _, _ in true },
    Case("Person", "false") { _, _ in false },
  ]

  @Test("A filtered fetch gives what filtering everything that there is gives, in the order of references")
  func oracle() throws {
    for round in 0..<3 {
      let world = try FetchWorld(seed: seed &+ UInt64(round))
      for item in Self.attributes + Self.dates + Self.nulls + Self.json + Self.toOnes + Self.toManys + Self.computed {
        let expected = world.references(Self.families[item.entity] ?? [])
          .filter { item.meets(world.object(.string($0)), world) ?? false }
        let found = try world.fetch(item.entity, filter: item.filter)
        #expect(found == expected, "\(item.testDescription), seed \(seed), round \(round)")
      }
    }
  }

  static let mistakes: [(entity: String, filter: String, start: String, part: String)] = [
    ("Employee", "", "line 1, column 1: ", ""),
    ("Employee", "salary >", "line 1, column 9: ", ""),
    ("Employee", "salary > 1.0 &&\n  (active", "line 2, column 10: ", ""),
    ("Employee", "salary > 1.0 & active", "line 1, column 14: ", ""),
    ("Employee", "salary > 1.0 &&\n  nope", "line 2, column 3: ", "nope"),
    ("Employee", "name == 'ab", "line 1, column 9: ", ""),
    ("Employee", "department.nope == 1", "line 1, column 12: ", "nope"),
    ("Person", "salary > 1.0", "line 1, column 1: ", "salary"),
    ("Employee", "salary", "line 1, column 1: ", "a filter must be a boolean"),
    ("Employee", "department", "line 1, column 1: ", "a filter must be a boolean"),
    ("Employee", "salary > 'x'", "line 1, column 8: ", ""),
    ("Employee", "salary + 1 > 2.0", "line 1, column 8: ", ""),
    ("Employee", "born == '2000-01-01'", "line 1, column 6: ", ""),
    ("Employee", "name.matches('[')", "line 1, column ", ""),
    ("Employee", "frobnicate(name)", "line 1, column ", "frobnicate"),
    ("Employee", "boss.salary > 1.0", "line 1, column 6: ", "salary"),
    ("Employee", String(repeating: "(", count: 100) + "active" + String(repeating: ")", count: 100), "line 1, ", ""),
  ]

  @Test("A mistaken filter is malformed-filter with line, column and what is wrong", arguments: mistakes)
  func mistake(_ entity: String, _ filter: String, _ start: String, _ part: String) throws {
    let server = try TestServer(schema: FetchWorld.schema, objects: [])
    let response = try server.client.send("GET", "/v1/objects/\(entity)?filter=" + filter.queryEncoded)
    #expect(response.status == 400)
    #expect(response.problem == "malformed-filter", "\(response.text)")
    let detail = response.json["detail"].text ?? ""
    #expect(detail.hasPrefix(start), "\(detail)")
    #expect(detail.contains(part), "\(detail)")
  }

  static let expensive = [
    "employees.exists(a, employees.exists(b, employees.exists(c, employees.exists(d, a.salary + b.salary + c.salary"
      + " + d.salary < 0.0))))",
    "name.matches('^((((((((((a?){9}){9}){9})+)+)+)+)+)+)$') || "
      + "employees.all(a, employees.all(b, employees.all(c, "
      + "c.name.matches('\(String(repeating: "(x*)*", count: 40))y'))))",
    "employees.map(a, employees.map(b, employees.map(c, employees.map(d, d.name)))).size() > 0",
    "employees.exists(a, employees.exists(b, employees.exists(c, (a.name + b.name + c.name).replace('a', 'bbbbbbbb')"
      + ".matches('(b|bb|bbb)+c')))) || true",
  ]

  @Test("A filter that costs too much for one object is malformed-filter, and the server goes on", arguments: expensive)
  func cost(_ filter: String) throws {
    let server = try TestServer(schema: FetchWorld.schema, objects: [("Department/1", #"{"name":"aaaaaaaa"}"#)]) {
      $0.requests.steps = 4_000_000
    }
    let members = (0..<300).map { #"{"name":"aaaaaaaaaaaaaaaaaaaa","salary":\#($0)}"# }
    try server.client.must(
      "POST", "/v1/objects/Department/1/employees", body: "[\(members.joined(separator: ","))]")
    let response = try server.client.send("GET", "/v1/objects/Department?filter=" + filter.queryEncoded)
    #expect(response.status == 400)
    #expect(response.problem == "malformed-filter", "\(response.text)")
    try server.client.must("GET", "/v1/objects/Department?filter=" + "name != ''".queryEncoded)
  }

  @Test("Pages of a filtered and sorted fetch show one state while writes go on, with the count of all of it")
  func pages() throws {
    var world = try FetchWorld(seed: seed)
    let query = "filter=\("salary != null".queryEncoded)&sort=-salary,name"
    var random = SplitMix64(seed: seed)
    let expected = try world.fetch("Employee", filter: "salary != null", sort: "-salary,name")
    let salaries = expected.map { world.object(.string($0))["salary"] }
    let revision = try world.server.revision
    var pages: [Value] = []
    var next: String? = ""
    while let page = next {
      let suffix = page.isEmpty ? "" : "&page=\(page)"
      let answer = try world.server.client.json("/v1/objects/Employee?\(query)&limit=4\(suffix)")
      pages.append(answer)
      next = answer["next"].text
      for reference in expected.shuffled(using: &random).prefix(3) { try world.server.set("\(reference)/salary", "7") }
      try world.server.client.must("POST", "/v1/objects/Employee", body: #"{"salary":1}"#)
    }
    let objects = pages.flatMap { $0["objects"].items }
    #expect(objects.compactMap { $0["@ref"].text } == expected, "seed \(seed)")
    #expect(objects.map { $0["salary"] } == salaries, "seed \(seed)")
    #expect(pages.allSatisfy { $0["revision"].whole == revision && $0["count"].whole == expected.count })
    try world.read()
    #expect(try world.fetch("Employee", filter: "salary == 1.0").count == pages.count)
  }

  @Test("A page cannot be continued under another filter or sort")
  func otherFetch() throws {
    let world = try FetchWorld(seed: seed)
    let next = try #require(
      world.server.client.json("/v1/objects/Person?filter=true&sort=name&limit=2")["next"].text)
    for query in ["filter=false", "sort=-name", "filter=1==1&sort=name", "filter=true&sort=-name", "section=name"] {
      let response = try world.server.client.send("GET", "/v1/objects/Person?\(query)&limit=2&page=\(next)")
      #expect(response.problem == "malformed-query", "\(query): \(response.text)")
    }
  }

  @Test("A filter joins with keys, expand and a limit, and meets what was written just before")
  func together() throws {
    let world = try FetchWorld(seed: seed)
    try world.server.client.must(
      "PUT", "/v1/objects/Employee/new", body: #"{"name":"New","salary":77.25,"department":"Department/1"}"#)
    let query = "filter=\("salary == 77.25".queryEncoded)&keys=name,department&expand=department&limit=1"
    let answer = try world.server.client.json("/v1/objects/Employee?\(query)")
    #expect(answer["count"].whole == 1 && !answer.has("next"))
    #expect(answer["objects"][0].names == ["@ref", "@revision", "name", "department"])
    #expect(answer["objects"][0]["department"]["@ref"].text == "Department/1")
    try world.server.set("Employee/new/salary", "1")
    #expect(try world.fetch("Employee", filter: "salary == 77.25").isEmpty)
  }
}
