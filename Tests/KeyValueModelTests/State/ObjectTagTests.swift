import TestKit
import Testing

@testable import KeyValueModel

/// The revision that an object's `ETag` names: the last one that changed its keys, or the keys that its computed keys
/// read.
@Suite("The revision of an object with computed keys")
struct ObjectTagTests {
  /// Other objects read an employee's salary and level, a manager's bonus too, and a department's name, employees and
  /// head.
  private static let schema = """
    entities:
      Employee:
        keys:
          name: { type: string }
          salary: { type: integer }
          level: { type: integer }
          department: { toOne: Department, inverse: employees }
          place: { computed: department.name }
          share: { type: integer, computed: "salary * 100 / department.total" }
          pay: { type: integer, computed: salary }
          peers: { type: integer, computed: "department.employees.filter(e, e.level == level).size()" }
      Manager:
        extends: Employee
        keys:
          bonus: { type: integer }
          pay: { type: integer, computed: "salary + bonus" }
      Department:
        keys:
          name: { type: string }
          motto: { type: string }
          employees: { toMany: Employee, ordered: true, inverse: department }
          head: { toOne: Employee }
          total: { type: integer, computed: employees.@sum.pay }
          best: { type: integer, computed: employees.@max.level }
          isLed: { type: boolean, computed: "employees.exists(e, e == head)" }
      Site:
        keys:
          main: { toOne: Department }
          paid: { type: integer, computed: main.head.pay }
          label: { computed: main.name }
    """

  /// The keys that no other object reads, by the first letter of an object's id.
  private static let ownKeys = ["e": ["name"], "m": ["name"], "d": ["motto"], "s": ["main"]]

  private static func operation(_ random: inout SplitMix64) throws -> KeyValueModel.Operation {
    let (number, value) = (Int.random(in: 0..<4, using: &random), Int.random(in: 0..<3, using: &random))
    let kind = ["Employee/e", "Manager/m", "Department/d", "Site/s"][Int.random(in: 0..<4, using: &random)]
    let name = kind + "\(number)"
    let employee = ["null", #""Employee/e\#(value)""#, #""Manager/m\#(value)""#].randomElement(using: &random) ?? ""
    let department = random.chance(15) ? "null" : #""Department/d\#(value)""#
    let choices: [(String, String)]
    switch kind {
    case "Department/d": choices = [("name", #""n\#(value)""#), ("motto", #""m\#(value)""#), ("head", employee)]
    case "Site/s": choices = [("main", department)]
    default:
      choices = [
        ("name", #""n\#(value)""#), ("salary", "\(value)"), ("level", "\(value)"), ("department", department),
        (kind == "Manager/m" ? "bonus" : "salary", "\(value)"),
      ]
    }
    let (key, text) = choices.randomElement(using: &random) ?? ("name", "null")
    return random.chance(4) ? .delete(try ref(name)) : try .set("\(name).\(key)", to: text)
  }

  private static func answers(_ state: ModelState) -> [Reference: (text: String, tag: Revision)] {
    var answers: [Reference: (String, Revision)] = [:]
    for entity in state.schema.entities {
      for reference in state.references(of: entity) {
        guard let record = state.record(reference) else { continue }
        var bytes: [UInt8] = []
        let tag = state.appendJSON(of: reference, record, to: &bytes)
        #expect(tag == state.revision(of: reference))
        answers[reference] = (String(decoding: bytes, as: UTF8.self), tag)
      }
    }
    return answers
  }

  @Test("moves with all that the answer is made of, and with nothing else", arguments: 0..<8)
  func random(round: Int) throws {
    let seed = seed &+ UInt64(round)
    var random = SplitMix64(seed: seed)
    var model = Model(schema: try Schema(yaml: Self.schema))
    for _ in 0..<250 {
      if random.chance(20) {
        for name in ["Employee/e", "Manager/m", "Department/d", "Site/s"] {
          _ = try? model.commit(Transaction([.create(name + "\(Int.random(in: 0..<4, using: &random))")]))
        }
      }
      let before = Self.answers(model.state)
      let operation = try Self.operation(&random)
      guard (try? model.commit(Transaction([operation]))) != nil else { continue }
      for (object, answer) in Self.answers(model.state) {
        let place: Comment = "\(object) after \(operation), seed \(seed)"
        guard let former = before[object] else {
          #expect(answer.tag == model.revision, place)
          continue
        }
        #expect(answer.tag == model.revision || answer == former, place)
        guard case .set(let subject, let key, _) = operation, subject != object,
          Self.ownKeys[String(subject.id.prefix(1))]?.contains(key) == true
        else { continue }
        #expect(answer == former, place)
      }
    }
    var decoder = StateDecoder(schema: model.schema)
    var encoder = StateEncoder(model.state, blockBytes: 300)
    while let block = encoder.nextBlock() {
      decoder.insert(try StateDecoder.block(of: block, schema: model.schema))
    }
    let restored = Self.answers(try decoder.finish())
    for (object, answer) in Self.answers(model.state) {
      #expect(restored[object].map { $0 == answer } == true, "\(object) after a snapshot, seed \(seed)")
    }
  }

  @Test("a key path's counts every key of the objects along it, and of a computed key's what it reads")
  func along() throws {
    var fixture = try Fixture(Self.schema)
    try fixture.create("Department/d1", #"{"name":"d"}"#)
    try fixture.create("Employee/e1", #"{"department":"Department/d1","salary":1}"#)
    try fixture.create("Site/s1", #"{"main":"Department/d1"}"#)
    func along(_ text: String, from object: String = "Site/s1") throws -> Revision {
      let reference = try ref(object)
      let entity = try fixture.model.state.requireRecord(reference).entity
      return fixture.model.state.revision(of: reference, along: try fixture.model.schema.resolve(text, from: entity))
    }
    try fixture.set("Department/d1", "motto", #""m""#)
    #expect(try along("main.name") == 4)
    #expect(try along("label") == 3)
    try fixture.set("Employee/e1", "name", #""n""#)
    #expect(try along("main.total") == 4)
    #expect(try along("main.employees.@sum.salary") == 5)
    #expect(try along("total", from: "Department/d1") == 4)
    try fixture.set("Employee/e1", "salary", "2")
    #expect(try along("main.total") == 6)
  }

  @Test("takes no memory where all or none of the keys are read from afar")
  func keeping() throws {
    let schema = try Schema(yaml: Self.schema)
    #expect(schema.entities.map(\.farKeeping) == [.apart, .apart, .apart, .creation])
    let whole = try Schema(
      yaml: "entities: {A: {keys: {b: {toOne: B}, x: {computed: b.y}}}, B: {keys: {y: {type: string}}}}")
    #expect(whole.entities.map(\.farKeeping) == [.creation, .revision])
  }
}
