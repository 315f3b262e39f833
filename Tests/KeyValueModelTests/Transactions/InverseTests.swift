import KeyValueModel
import Testing

@Suite("Inverses of collections")
struct InverseTests {
  static let schema = """
    entities:
      Department:
        keys:
          employees: {toMany: Employee, ordered: true, inverse: department}
          staff: {toMany: Employee, inverse: unit}
      Person:
        keys:
          friends: {toMany: Person, inverse: friends}
          rivals: {toMany: Person, ordered: true, inverse: rivals}
      Employee:
        extends: Person
        keys:
          department: {toOne: Department, inverse: employees}
          unit: {toOne: Department, inverse: staff}
          projects: {toMany: Project, ordered: true, inverse: people}
      Manager: {extends: Employee}
      Project: {keys: {people: {toMany: Employee, ordered: true, inverse: projects}}}
      Node: {keys: {parent: {toOne: Node, inverse: children}, children: {toMany: Node, ordered: true, inverse: parent}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    for id in 1...2 {
      try fixture.create("Department/\(id)")
      try fixture.create("Project/\(id)")
    }
    for id in 1...4 {
      try fixture.create("Employee/\(id)")
      try fixture.create("Node/\(id)")
    }
    try fixture.create("Manager/5")
    try fixture.create("Person/6")
  }

  private func ids(_ place: String) throws -> String {
    let parts = place.split(separator: ".").map(String.init)
    return try fixture.value(parts[0], parts[1]).filter(\.isNumber)
  }

  /// Applies steps, each a place and its new value: `null`, one reference or several.
  private mutating func apply(_ steps: [String]) throws {
    for step in steps {
      let parts = step.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
      let references = parts[1].split(separator: " ").map { "\"\($0)\"" }
      let isMany = ["employees", "staff", "friends", "rivals", "projects", "people", "children"]
        .contains { parts[0].hasSuffix($0) }
      let list = "[\(references.joined(separator: ","))]"
      try fixture.commit(.set(parts[0], to: isMany ? list : parts[1] == "null" ? "null" : references[0]))
      #expect(inconsistencies(in: fixture.model.state) == [], "\(step)")
    }
  }

  @Test(
    "A to-one and the collection on its far side agree, whichever is set",
    arguments: [
      (["Employee/2.department=Department/1", "Employee/1.department=Department/1"], "21", ""),
      (["Department/1.employees=Employee/2 Manager/5 Employee/1"], "251", ""),
      (["Department/1.employees=Employee/1 Employee/2", "Employee/1.department=Department/2"], "2", "1"),
      (["Department/1.employees=Employee/1 Employee/2", "Employee/1.department=null"], "2", ""),
      (["Department/1.employees=Employee/1 Employee/2", "Employee/1.department=Department/1"], "12", ""),
      (["Department/1.employees=Employee/1 Employee/2", "Department/1.employees=Employee/2 Employee/1"], "21", ""),
      (["Department/1.employees=Employee/1 Employee/2", "Department/1.employees="], "", ""),
      (["Department/1.employees=Employee/1 Employee/2", "Department/2.employees=Manager/5 Employee/1"], "2", "51"),
      (["Department/1.employees=Employee/1 Employee/2", "Department/2.employees=Employee/2 Employee/1"], "", "21"),
    ])
  mutating func oneToMany(steps: [String], first: String, second: String) throws {
    try apply(steps)
    #expect(try (ids("Department/1.employees"), ids("Department/2.employees")) == (first, second))
    try apply(steps.map { $0.replacing("employees", with: "staff").replacing("department", with: "unit") })
    #expect(
      try (ids("Department/1.staff"), ids("Department/2.staff")) == (String(first.sorted()), String(second.sorted())))
  }

  @Test(
    "Two collections that are each other's inverse agree",
    arguments: [
      (["Employee/1.projects=Project/2 Project/1"], "1", "1"),
      (["Project/1.people=Employee/2 Employee/1", "Employee/3.projects=Project/1 Project/2"], "213", "3"),
      (["Project/1.people=Employee/2 Employee/1", "Employee/2.projects=Project/2"], "1", "2"),
      (["Project/1.people=Employee/2 Manager/5", "Manager/5.projects="], "2", ""),
      (["Project/1.people=Employee/1 Employee/2", "Project/1.people=Employee/2 Employee/1"], "21", ""),
      (["Project/1.people=Employee/1 Employee/2", "Employee/1.projects=Project/2 Project/1"], "12", "1"),
    ])
  mutating func manyToMany(steps: [String], first: String, second: String) throws {
    try apply(steps)
    #expect(try (ids("Project/1.people"), ids("Project/2.people")) == (first, second))
  }

  @Test(
    "A collection that is its own inverse is mutual, also with the object itself and with other entities of the family",
    arguments: [
      (["Employee/1.rivals=Employee/2 Person/6"], ["26", "1", "", "1"]),
      (["Employee/1.rivals=Employee/1 Employee/2"], ["12", "1", "", ""]),
      (["Employee/1.rivals=Employee/1", "Employee/1.rivals="], ["", "", "", ""]),
      (["Employee/1.rivals=Employee/1 Employee/2", "Employee/2.rivals=Employee/3"], ["1", "3", "2", ""]),
      (["Employee/1.rivals=Employee/2", "Employee/3.rivals=Employee/2 Employee/1"], ["23", "13", "21", ""]),
      (["Person/6.rivals=Employee/1 Employee/2", "Employee/1.rivals=Employee/1 Person/6"], ["16", "6", "", "12"]),
    ])
  mutating func mutual(steps: [String], result: [String]) throws {
    try apply(steps)
    let people = ["Employee/1", "Employee/2", "Employee/3", "Person/6"]
    #expect(try people.map { try ids("\($0).rivals") } == result)
    try apply(steps.map { $0.replacing("rivals", with: "friends") })
    #expect(try people.map { try ids("\($0).friends").sorted() } == result.map { $0.sorted() })
  }

  @Test("A tree is kept together by either side, and a node may be its own parent")
  mutating func tree() throws {
    try apply([
      "Node/1.children=Node/2 Node/3", "Node/4.parent=Node/1", "Node/3.children=Node/2", "Node/1.parent=Node/1",
    ])
    #expect(try (ids("Node/1.children"), ids("Node/3.children"), ids("Node/1.parent")) == ("341", "2", "1"))
    try apply(["Node/1.parent=Node/4", "Node/2.children=Node/1 Node/2"])
    #expect(try (ids("Node/1.parent"), ids("Node/2.parent"), ids("Node/3.children")) == ("2", "2", ""))
    try apply(["Node/1.children="])
    #expect(
      try ["Node/3.parent", "Node/4.parent"].map { try fixture.value(String($0.prefix(6)), "parent") } == [
        "null", "null",
      ])
  }

  @Test("Members that move by index keep their far side, and those that come from elsewhere are stolen")
  mutating func indexes() throws {
    try apply([
      "Department/1.employees=Employee/1 Employee/2 Employee/3", "Department/2.employees=Employee/4 Manager/5",
    ])
    try fixture.commit(.replace([0, 2], of: "Department/1.employees", with: #"["Employee/3","Manager/5"]"#))
    #expect(try (ids("Department/1.employees"), ids("Department/2.employees")) == ("325", "4"))
    #expect(try fixture.value("Employee/1", "department") == "null")
    try fixture.commit(
      .remove([0], from: "Department/1.employees"),
      .insert(#"["Employee/3","Employee/4"]"#, into: "Department/1.employees", at: [2, 0]))
    #expect(try (ids("Department/1.employees"), ids("Department/2.employees")) == ("4235", ""))
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("An object is made with its relationships, and replaced without those that the body leaves out")
  mutating func bodies() throws {
    try fixture.create(
      "Employee/9", #"{"department":"Department/1","projects":["Project/2","Project/1"],"rivals":["Employee/9"]}"#)
    #expect(try (ids("Department/1.employees"), ids("Project/1.people"), ids("Employee/9.rivals")) == ("9", "9", "9"))
    try fixture.put("Employee/9", #"{"unit":"Department/1","projects":["Project/1"]}"#)
    #expect(try (ids("Department/1.employees"), ids("Department/1.staff"), ids("Project/2.people")) == ("", "9", ""))
    #expect(try ids("Employee/9.rivals") == "")
    try fixture.patch("Employee/9", #"{"unit":null,"department":"Department/2"}"#)
    #expect(try (ids("Department/2.employees"), ids("Department/1.staff")) == ("9", ""))
    #expect(inconsistencies(in: fixture.model.state) == [])
  }
}
