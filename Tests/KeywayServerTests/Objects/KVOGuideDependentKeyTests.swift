import KeyValueModel
import TestKit
import Testing

/// The chapter "Registering Dependent Keys" of Apple's guide; see `KVOGuideTests`. No dependence is registered here:
/// it is found from the expression.
@Suite("The KVO guide: dependent keys")
struct KVOGuideDependentKeyTests {
  private let server: TestServer

  init() throws { server = try KVOGuide.server() }

  private func change(_ object: String, _ key: String, _ old: String, _ new: String) -> String {
    #"{"object":"\#(object)","keyPath":"\#(key)","kind":"setting","old":\#(old),"new":\#(new)}"#
  }

  /// "Example implementation of keyPathsForValuesAffectingValueForKey:" and "Example implementation of the
  /// keyPathsForValuesAffecting<Key> naming convention".
  @Test("fullName is told when firstName or lastName is set, and once when both are")
  func fullName() throws {
    let observer = try server.client.stream("/v1/objects/Person/1/fullName?options=old,new")
    try server.set("Person/1/firstName", #""Augusta""#)
    #expect(
      try observer.next().changes.map(\.json) == [
        change("Person/1", "fullName", #""Ada Lovelace""#, #""Augusta Lovelace""#)
      ])
    try server.set("Person/1/lastName", #""King""#)
    #expect(
      try observer.next().changes.map(\.json) == [
        change("Person/1", "fullName", #""Augusta Lovelace""#, #""Augusta King""#)
      ])
    try server.client.must("PATCH", "/v1/objects/Person/1", body: #"{"firstName":"Mary","lastName":"Somerville"}"#)
    #expect(
      try observer.next().changes.map(\.json) == [
        change("Person/1", "fullName", #""Augusta King""#, #""Mary Somerville""#)
      ])
  }

  @Test("The prior of the key comes before that of what depends on it, and the changes come the other way round")
  func order() throws {
    let observer = try server.client.stream("/v1/objects/Person/1/firstName,fullName?options=prior")
    try server.set("Person/1/firstName", #""Augusta""#)
    let changes = try observer.next().changes
    #expect(changes.map { $0["keyPath"].text } == ["firstName", "fullName", "fullName", "firstName"])
    #expect(changes.map { $0.has("prior") } == [true, true, false, false])
  }

  /// The paragraph on `super`: a subclass adds to the keys that its parent's depends on.
  @Test("A subclass that declares fullName anew depends on its middle name, and still on both names of its parent")
  func subclass() throws {
    let observer = try server.client.stream("/v1/objects/Employee/2/fullName?options=old,new")
    let names = ["Per Scheutz", "Per Georg Scheutz", "P Georg Scheutz", "P Georg S", "P S"]
    for (key, json) in [
      ("middleName", #""Georg""#), ("firstName", #""P""#), ("lastName", #""S""#), ("middleName", "null"),
    ] { try server.set("Employee/2/\(key)", json) }
    for (old, new) in zip(names, names.dropFirst()) {
      #expect(
        try observer.next().changes.map(\.json) == [change("Employee/2", "fullName", "\"\(old)\"", "\"\(new)\"")])
    }
    // A person has no middle name: that key belongs to employees.
    #expect(try server.client.send("GET", "/v1/objects/Person/1/middleName").problem == "undefined-key")
  }

  /// "To-Many Relationships": in the guide the department observes each of its employees by hand, because its dependent
  /// keys do not go through a to-many.
  @Test("totalSalary is told when a salary is set, when an employee comes, and when one goes in whatever way")
  func totalSalary() throws {
    let observer = try server.client.stream("/v1/objects/Department/1/totalSalary?options=old,new")
    let steps: [(total: String, write: () throws -> Void)] = [
      ("551.5", { try server.set("Employee/1/salary", "301") }),
      ("751.5", { try server.client.must("POST", "/v1/objects/Department/1/employees", body: #""Employee/3""#) }),
      ("450.5", { try server.set("Employee/1/department", "null") }),
      ("751.5", { try server.set("Employee/1/department", #""Department/1""#) }),
      ("501", { try server.client.must("DELETE", "/v1/objects/Department/1/employees?object=Employee/2") }),
      ("200", { try server.client.must("DELETE", "/v1/objects/Employee/1") }),
      ("0", { try server.set("Department/1/employees", "[]") }),
    ]
    var old = "550.5"
    for (total, write) in steps {
      try write()
      #expect(
        try observer.next().changes.map(\.json) == [change("Department/1", "totalSalary", old, total)])
      old = total
    }
  }

  @Test("An employee who left the department no longer changes its totalSalary, and a new one does")
  func leaving() throws {
    let observer = try server.client.stream("/v1/objects/Department/1/totalSalary?options=new")
    try server.set("Employee/1/department", "null")
    #expect(try observer.next().changes.map { $0["new"].double } == [250.5])
    try server.set("Employee/1/salary", "9999")
    try server.set("Employee/3/department", #""Department/1""#)
    let event = try observer.next()
    #expect(event.json["revision"].whole == (try server.revision))
    #expect(event.changes.map { $0["new"].double } == [450.5])
    try server.set("Employee/3/salary", "0.5")
    #expect(try observer.next().changes.map { $0["new"].double } == [251])
  }
}
