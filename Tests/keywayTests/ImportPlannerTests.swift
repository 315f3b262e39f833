import KeyValueModel
import OrderedCollections
import TestKit
import Testing

@testable import keyway

@Suite("The order in which an import makes objects and relationships")
struct ImportPlannerTests {
  /// Makes a line about a node: the node that it needs, the one that it names (with the inverse `inverse`), and a
  /// to-many.
  static func row(
    _ line: Int, _ id: String, needs: String? = nil, names: String? = nil, members: [String] = [],
    inverse: String? = nil
  ) throws -> ObjectLine {
    let owner = try reference(id)
    var row = ObjectLine(line: line, bytes: 10, reference: owner, values: ["line": .integer(Int64(line))])
    if let needs {
      let link = ImportLink(line: line, owner: owner, key: "need", targets: [try reference(needs)], isRequired: true)
      row.links.append(link)
    }
    if let names {
      row.links.append(
        ImportLink(line: line, owner: owner, key: "name", targets: [try reference(names)], inverse: inverse))
    }
    if !members.isEmpty {
      let targets = try members.map(reference)
      row.links.append(
        ImportLink(line: line, owner: owner, key: "members", targets: targets, isToMany: true, inverse: "name"))
    }
    return row
  }

  static func reference(_ id: String) throws -> Reference { try #require(Reference("N/\(id)")) }

  /// Abbreviates operations: `+a{need:b}` is a creation, `a.name=b` a set.
  static func short(_ operations: [PlannedOperation]) -> [String] {
    func text(_ value: Value) -> String {
      switch value {
      case .reference(let reference): reference.id
      case .array(let elements): "[" + elements.map(text).joined(separator: " ") + "]"
      default: value.json
      }
    }
    return operations.map { operation in
      switch operation.kind {
      case .create(let object):
        let keys = object.members.filter { $0.key != "line" }.map { "\($0.key):\(text($0.value))" }
        return "+\(operation.object.id)" + (keys.isEmpty ? "" : "{\(keys.joined(separator: ","))}")
      case .patch: return "~\(operation.object.id)"
      case .set(let key, let value): return "\(operation.object.id).\(key)=\(text(value))"
      }
    }
  }

  @Test("An object that another needs is created first, even if its line comes later")
  func required() throws {
    var planner = ImportPlanner()
    let batch = try [Self.row(1, "a", needs: "b"), Self.row(2, "b", needs: "c"), Self.row(3, "c")]
    #expect(Self.short(try planner.plan(batch, present: [])) == ["+c", "+b{need:c}", "+a{need:b}"])
    try planner.finish()
  }

  @Test("References to objects of the batch are set after all are created, those to existing ones at creation")
  func optional() throws {
    var planner = ImportPlanner()
    let batch = try [Self.row(1, "a", names: "b"), Self.row(2, "b", names: "old"), Self.row(3, "c", names: "c")]
    let plan = try planner.plan(batch, present: [Self.reference("old")])
    #expect(Self.short(plan) == ["+a", "+b{name:old}", "+c{name:c}", "a.name=b"])
  }

  @Test("References into later batches wait, and so does an object for what it needs")
  func acrossBatches() throws {
    var planner = ImportPlanner()
    let first = try [Self.row(1, "a", needs: "d", names: "c"), Self.row(2, "b", members: ["c", "a"])]
    #expect(Self.short(try planner.plan(first, present: [])) == ["+b"])
    #expect(planner.heldReferences == 4)
    #expect(planner.isAbsent(try Self.reference("d")))
    #expect(Self.short(try planner.plan([Self.row(3, "c")], present: [])) == ["+c"])
    let last = try planner.plan([Self.row(4, "d")], present: [Self.reference("c")])
    #expect(Self.short(last) == ["+d", "+a{need:d}", "a.name=c", "b.members=[c a]"])
    #expect(last.map(\.line) == [4, 1, 1, 2])
    #expect(planner.heldReferences == 0)
    try planner.finish()
  }

  @Test("A to-one that its inverse to-many says too is not set by itself; one without an inverse is")
  func inverse() throws {
    var planner = ImportPlanner()
    let batch = try [
      Self.row(1, "a", names: "d", inverse: "members"), Self.row(2, "b", names: "d", inverse: "members"),
      Self.row(3, "c", names: "d"), Self.row(4, "d", members: ["b", "a"]),
    ]
    let plan = try planner.plan(batch, present: [])
    #expect(Self.short(plan) == ["+a", "+b", "+c", "+d", "c.name=d", "d.members=[b a]"])
  }

  @Test("Of two to-ones that say the same of each other, the first is set")
  func pair() throws {
    var planner = ImportPlanner()
    let batch = try [Self.row(1, "a", names: "b", inverse: "name"), Self.row(2, "b", names: "a", inverse: "name")]
    #expect(Self.short(try planner.plan(batch, present: [])) == ["+a", "+b", "a.name=b"])
  }

  @Test("A required reference in a circle is refused with its objects and lines; one to the object itself is none")
  func circle() throws {
    var planner = ImportPlanner()
    _ = try planner.plan([Self.row(1, "a", needs: "b"), Self.row(2, "self", needs: "self")], present: [])
    let error = #expect(throws: ImportError.self) {
      try planner.plan([Self.row(3, "b", needs: "c"), Self.row(4, "c", needs: "a")], present: [])
    }
    #expect(error?.line == 4)
    for clause in ["N/a (line 1) needs N/b as its need", "N/c (line 4) needs N/a as its need"] {
      #expect(error?.reason.contains(clause) == true, "\(error?.reason ?? "")")
    }
  }

  @Test("A missing object is reported at the first line that names it")
  func missing() throws {
    var planner = ImportPlanner()
    let batch = try [Self.row(1, "a", needs: "b"), Self.row(2, "b", needs: "x"), Self.row(3, "c", names: "y")]
    _ = try planner.plan(batch, present: [])
    let reason = "need names N/x, which is neither in the file nor on the server"
    #expect(throws: ImportError(line: 2, reason: reason)) { try planner.finish() }
  }

  @Test("Over the limits of what is held, the import stops and names the flag")
  func limits() throws {
    var planner = ImportPlanner(limits: ImportLimits(heldReferences: 1))
    _ = try planner.plan([Self.row(1, "a", names: "x")], present: [])
    let references = #expect(throws: ImportError.self) {
      try planner.plan([Self.row(2, "b", names: "x")], present: [])
    }
    #expect(references?.reason.contains("--held-references") == true)
    planner = ImportPlanner(limits: ImportLimits(heldBytes: 15))
    _ = try planner.plan([Self.row(1, "a", needs: "x")], present: [])
    let bytes = #expect(throws: ImportError.self) { try planner.plan([Self.row(2, "b", needs: "x")], present: []) }
    #expect(bytes?.line == 2)
    #expect(bytes?.reason.contains("--held-bytes") == true)
  }

  @Test("An object that is replaced is patched, its documents are set, and nothing holds it back")
  func replaced() throws {
    var planner = ImportPlanner()
    var row = try Self.row(1, "a", needs: "b")
    row.replaces = true
    row.documents = ["tags": .array([])]
    let plan = try planner.plan([row], present: [Self.reference("a")])
    #expect(Self.short(plan) == ["~a", "a.tags=[]"])
    #expect(Self.short(try planner.plan([Self.row(2, "b")], present: [])) == ["+b", "a.need=b"])
  }
}
