import Foundation
import TestKit
import Testing

@testable import KeyValueModel

@Suite("A schema")
struct SchemaTests {
  static let company = """
    entities:
      Manager:
        extends: Employee
        keys:
          bonus: {type: integer, default: 5}
          title: {computed: department.label}
      Person:
        keys:
          firstName: {type: string, optional: false, minLength: 1, maxLength: 4}
          born: {type: date}
          title: {type: string, computed: firstName, notifies: changed}
        display: [title, born]
      Employee:
        extends: Person
        keys:
          salary: {type: number, minimum: 0, maximum: 1e6, default: 0}
          department: {toOne: Department, inverse: head, optional: false, delete: cascade, notifies: manual}
          bossName: {computed: department.boss.firstName}
      Department:
        keys:
          label: {type: string, pattern: '^[a-z]+$', enum: [a, b]}
          head: {toOne: Employee, inverse: department}
          boss: {computed: head}
          extra: {type: json, default: {a: [1, 2.5, true, null, '3', x]}}
    """

  let schema: Schema

  init() throws {
    schema = try Schema(yaml: Self.company)
  }

  private func entity(_ name: String) throws -> Entity {
    try #require(schema.entity(named: name))
  }

  @Test("Entities stand in the order of the file, parents or not")
  func order() throws {
    #expect(schema.entities.map(\.name) == ["Manager", "Person", "Employee", "Department"])
    #expect(schema.entities.map(\.index) == [0, 1, 2, 3])
    #expect(schema.family(of: try entity("Person")).map(\.name) == ["Manager", "Person", "Employee"])
    #expect(schema.entity(named: "person") == nil)
    #expect(try entity("Manager").isKind(of: "Person"))
    #expect(try !entity("Person").isKind(of: "Manager"))
  }

  @Test("Inherited keys come first, at the same place in every subclass")
  func inheritance() throws {
    let manager = try entity("Manager")
    let names = ["firstName", "born", "title", "salary", "department", "bossName", "bonus"]
    #expect(manager.keys.map(\.name) == names)
    #expect(manager.keys.map(\.storage) == [0, 1, nil, 2, 3, nil, 4])
    #expect(manager.parent == "Employee")
    for (index, key) in try entity("Employee").keys.enumerated() { #expect(manager.indexOfKey(key.name) == index) }
  }

  @Test("A computed key that is declared anew has the dependencies of both")
  func redeclared() throws {
    guard case .computed(let own) = try entity("Manager").keys[2].kind,
      case .computed(let parents) = try entity("Employee").keys[2].kind
    else {
      Issue.record("title is not computed")
      return
    }
    #expect(own.text == "department.label")
    #expect(own.inheritedReads == [parents.reads])
    #expect(parents.reads == KeyTree(path: [0]))
    #expect(parents.inheritedReads == [])
  }

  @Test("A computed key may lead through another that names an object")
  func throughComputed() throws {
    let employee = try entity("Employee")
    let path = try schema.resolve("department.boss.bossName", from: employee)
    #expect(path.keys == [4, 2, 5])
    #expect(path.type == .attribute(.string))
    #expect(schema.leadsToObject(try schema.resolve("department.boss", from: employee)))
    #expect(!schema.leadsToObject(path))
  }

  @Test("Display is what the entity says, is not inherited, and is all keys otherwise")
  func display() throws {
    #expect(try entity("Person").display.map(\.text) == ["title", "born"])
    #expect(try entity("Employee").display.map(\.text) == entity("Employee").keys.map(\.name))
  }

  @Test("The words of a key are kept")
  func words() throws {
    let person = try entity("Person")
    #expect(person.keys.map(\.isOptional) == [false, true, true])
    #expect(person.keys.map(\.notifying) == [.always, .always, .changed])
    guard case .attribute(let firstName) = person.keys[0].kind,
      case .attribute(let salary) = try entity("Employee").keys[3].kind,
      case .toOne(let department) = try entity("Employee").keys[4].kind,
      case .attribute(let label) = try entity("Department").keys[0].kind,
      case .attribute(let extra) = try entity("Department").keys[3].kind
    else {
      Issue.record("a key is not what it should be")
      return
    }
    #expect((firstName.minLength, firstName.maxLength) == (1, 4))
    #expect((salary.minimum, salary.maximum, salary.defaultValue) == (.number(0), .number(1e6), .number(0)))
    #expect((department.deleteRule, department.inverse, department.inverseIndex) == (.cascade, "head", 1))
    #expect(try entity("Employee").keys[4].notifying == .manual)
    #expect((label.pattern?.text, label.allowedValues) == ("^[a-z]+$", [.string("a"), .string("b")]))
    #expect(extra.defaultValue?.json == #"{"a":[1,2.5,true,null,"3","x"]}"#)
  }

  @Test(
    "Scalars of YAML are those of the core schema of YAML 1.2",
    arguments: [
      ("0o17", "15"), ("0x1F", "31"), ("010", "10"), ("+5", "5"), ("-7", "-7"), ("1.", "1"), (".5", "0.5"),
      ("1e2", "100"),
      ("+1.5e-1", "0.15"), ("0o18", #""0o18""#), ("-0o7", #""-0o7""#), ("1_000", #""1_000""#), ("1:30", #""1:30""#),
      ("0b1", #""0b1""#), ("0x1p3", #""0x1p3""#), ("inf", #""inf""#), ("nan", #""nan""#), ("'.inf'", #"".inf""#),
      ("yes", #""yes""#), ("True", "true"), ("~", "null"), ("!!str 8", #""8""#), ("! 8", #""8""#), ("!!int '8'", "8"),
      ("!!float 8", "8"), ("!!null ''", "null"), ("!!map {a: !!seq [!!bool true]}", #"{"a":[true]}"#),
    ])
  func coreSchema(text: String, json: String) throws {
    let schema = try Schema(yaml: "entities: {A: {keys: {x: {type: json, default: {v: \(text)}}}}}")
    let key = try #require(schema.entity(named: "A")?.keys.first)
    #expect(key.defaultValue.json == "{\"v\":\(json)}")
  }

  @Test("Lengths are whole numbers of YAML 1.2", arguments: [("010", 10), ("0o17", 15)])
  func lengths(text: String, length: Int) throws {
    let schema = try Schema(yaml: "entities: {A: {keys: {x: {type: string, maxLength: \(text)}}}}")
    #expect(schema.entity(named: "A")?.keys.first?.valueAttribute?.maxLength == length)
  }

  @Test("Words of YAML mean what YAML 1.2 and the type say")
  func scalars() throws {
    let yaml = """
      entities:
        A:
          keys:
            text: {type: string, default: 12}
            word: {type: string, default: 'null'}
            yes: {type: string, default: yes}
            day: {type: date, default: 2010-03-01}
            whole: {type: integer, default: 3.0}
            real: {type: number, default: 3}
            flag: {type: boolean, default: true}
            quoted: {type: json, default: '12'}
      """
    let keys = try Schema(yaml: yaml).entities[0].keys
    #expect(
      keys.map(\.defaultValue.json) == ["\"12\"", "\"null\"", "\"yes\"", "\"2010-03-01\"", "3", "3", "true", "\"12\""])
    #expect(keys[5].defaultValue == .number(3))
  }

  @Test("Anchors and aliases of YAML may be used")
  func aliases() throws {
    let schema = try Schema(yaml: "entities: {A: {keys: {x: &t {type: string}, y: *t}}}")
    #expect(schema.entities[0].keys.map(\.name) == ["x", "y"])
  }

  @Test("A schema may have no entities, and entities no keys")
  func small() throws {
    #expect(try Schema(yaml: "entities: {}").entities.isEmpty)
    #expect(try Schema(yaml: "entities: {A: {}, B: {keys: {}}}").entities.map(\.keys.count) == [0, 0])
  }
}

@Suite("Fingerprints of schemas")
struct SchemaFingerprintTests {
  private let text = "entities:\n  A:\n    keys:\n      b: { type: string, default: '8' }\n      c: { toOne: A }\n"

  @Test(
    "Comments, quotation marks and layout do not count",
    arguments: [
      "# A\nentities:\n    A:\n        keys:\n            b:\n                type: string\n"
        + "                default: \"8\"\n"
        + "            c: { toOne: A } # c\n\n",
      "{entities: {A: {keys: {b: {type: string, default: '8'}, c: {toOne: A}}}}}",
      "entities:\n  A:\n    keys:\n      b: { type: \"string\", default: '8' }\n      c: { toOne: A }",
    ])
  func same(_ other: String) {
    #expect(Schema.fingerprint(ofYAML: other) == Schema.fingerprint(ofYAML: text))
  }

  @Test("Only declared keys exist, in their order", arguments: ["'8'", "b:", "toOne", "string", "A:"])
  func different(_ part: String) {
    let other = text.replacing(part, with: part == "'8'" ? "8" : part + "x")
    #expect(Schema.fingerprint(ofYAML: other) != Schema.fingerprint(ofYAML: text))
    let swapped = "entities: {A: {keys: {c: {toOne: A}, b: {type: string, default: '8'}}}}"
    #expect(Schema.fingerprint(ofYAML: swapped) != Schema.fingerprint(ofYAML: text))
  }

  @Test("It is 16 digits, of what is no YAML too")
  func form() {
    for text in [text, "", "{", "a: *b"] {
      #expect(Schema.fingerprint(ofYAML: text).wholeMatch(of: /[0-9a-f]{16}/) != nil)
    }
    #expect(Schema.fingerprint(ofYAML: "{") != Schema.fingerprint(ofYAML: "}"))
  }
}

@Suite("The entity that a reference names")
struct NameTableTests {
  @Test("It is the one of that name, however many there are and however alike; another name has none")
  func lookup() throws {
    var random = SplitMix64(seed: seed)
    for count in [1, 2, 3, 7, 40, 300] {
      // Names of few different letters, many of which are prefixes of others.
      var names: Set<String> = []
      while names.count < count {
        let length = Int.random(in: 1...9, using: &random)
        names.insert(String((0..<length).map { _ in "AaB_9".randomElement(using: &random) ?? "A" }))
        names = names.filter { $0.first?.isLetter == true }
      }
      let keys = "keys: { x: { type: integer } }"
      let schema = try Schema(yaml: "entities:\n" + names.map { "  \($0): { \(keys) }\n" }.joined())
      for name in names.sorted() {
        let id = String(repeating: "1", count: Int.random(in: 1...30, using: &random))
        let reference = try #require(Reference("\(name)/\(id)"))
        #expect(schema.entity(of: reference)?.name == name, "seed \(seed)")
        #expect(try schema.requireEntity(of: reference).name == name, "seed \(seed)")
        for other in [name + "0", String(name.dropLast())] where !names.contains(other) {
          guard let unknown = Reference("\(other)/1") else { continue }
          #expect(schema.entity(of: unknown) == nil, "seed \(seed), \(other)")
          #expect(throws: ModelError.self) { try schema.requireEntity(of: unknown) }
        }
      }
    }
  }
}
