import Testing

@testable import KeyValueModel

@Suite("Schema changes that go by themselves")
struct SchemaChangeTests {
  /// Two schemas of an entity `A` (with a `B` beside it), and the expected description of their differences.
  struct Case: Sendable, CustomTestStringConvertible {
    let old: String
    let new: String
    let changes: [String]

    var testDescription: String { "\(old) → \(new)" }

    init(_ old: String, _ new: String, _ changes: String...) {
      (self.old, self.new, self.changes) = (old, new, changes)
    }
  }

  @Test(
    "Each is said in a line, and none stands in the way",
    arguments: [
      Case("A: {}", "A: {}"),
      Case("A: {}", "A: {}, B: {}", "B is new"),
      Case("A: {}", "A: {keys: {x: {type: string}}}", "A.x is new, and null in all objects"),
      Case("A: {}", "A: {keys: {x: {type: integer, default: 3}}}", "A.x is new, and 3 in all objects"),
      Case("A: {}", "A: {keys: {x: {type: integer, optional: false, default: 3}}}", "A.x is new, and 3 in all objects"),
      Case("A: {}", "A: {keys: {x: {toMany: string}}}", "A.x is new, and empty in all objects"),
      Case("A: {}", "A: {keys: {x: {toOne: A}}}", "A.x is new, and null in all objects"),
      Case(
        "A: {}", "A: {keys: {x: {toOne: A, inverse: y}, y: {toMany: A, inverse: x}}}",
        "A.x is new, and null in all objects", "A.y is new, and empty in all objects"),
      Case(
        "A: {keys: {x: {toOne: A}}}", "A: {keys: {x: {toOne: A, inverse: y}, y: {toMany: A, inverse: x}}}",
        "A.x has the inverse A.y", "A.y is new, and filled from A.x"),
      Case(
        "A: {keys: {x: {toOne: A, inverse: y}, y: {toMany: A, inverse: x}}}",
        "A: {keys: {x: {toOne: A}, y: {toMany: A}}}",
        "A.x has no inverse any more", "A.y has no inverse any more"),
      Case("A: {}", "A: {keys: {x: {computed: '1 + 1'}}}", "A.x is new and computed"),
      Case("A: {keys: {x: {computed: '1 + 1'}}}", "A: {}", "A.x is gone; it was computed"),
      Case("A: {keys: {x: {computed: '1 + 1'}}}", "A: {keys: {x: {computed: '1 + 2'}}}", "A.x is computed as 1 + 2"),
      Case(
        "A: {keys: {x: {computed: '1 + 1'}}}", "A: {keys: {x: {computed: '1 + 1', type: integer}}}",
        "A.x is declared as integer"),
      Case(
        "A: {keys: {x: {computed: '1 + 1'}}}", "A: {keys: {x: {type: integer}}}",
        "A.x was computed and is stored now; its computed values are not kept",
        "A.x is new, and null in all objects"),
      Case("A: {keys: {x: {type: string}}}", "A: {keys: {x: {type: string, indexed: true}}}", "A.x is indexed"),
      Case(
        "A: {keys: {x: {type: string, indexed: true}}}", "A: {keys: {x: {type: string}}}", "A.x is no longer indexed"),
      Case("A: {keys: {x: {type: string}}}", "A: {keys: {x: {type: string, notifies: manual}}}", "A.x notifies manual"),
      Case(
        "A: {keys: {x: {type: string}}}", "A: {keys: {x: {type: string, default: a}}}",
        "A.x has the default \"a\"; objects keep what they have"),
      Case(
        "A: {keys: {x: {type: string, default: a}}}", "A: {keys: {x: {type: string}}}",
        "A.x has no default any more; objects keep what they have"),
      Case("A: {keys: {x: {type: string, optional: false}}}", "A: {keys: {x: {type: string}}}", "A.x may be null"),
      Case(
        "A: {keys: {x: {type: string}}}", "A: {keys: {x: {type: string, optional: false}}}", "A.x must have a value"),
      Case(
        "A: {keys: {x: {type: string, minLength: 2, pattern: a}}}",
        "A: {keys: {x: {type: string, maxLength: 4, enum: [ab, ba]}}}", "A.x has no minLength any more",
        "A.x has maxLength 4", "A.x has no pattern any more", "A.x has enum \"ab\", \"ba\""),
      Case(
        "A: {keys: {x: {type: integer, minimum: 1}}}", "A: {keys: {x: {type: integer, minimum: 0, maximum: 9}}}",
        "A.x has minimum 0", "A.x has maximum 9"),
      Case("A: {keys: {x: {toOne: A}}}", "A: {keys: {x: {toOne: A, delete: deny}}}", "A.x has the delete rule deny"),
      Case("A: {keys: {x: {toOne: A}}}, B: {}", "A: {keys: {x: {toOne: B}}}, B: {}", "A.x leads to B"),
      Case(
        "A: {keys: {x: {toMany: A}}}", "A: {keys: {x: {toMany: A, ordered: true}}}",
        "A.x is ordered, initially as its members were sorted before"),
      Case("A: {keys: {x: {type: string}}}", "A: {keys: {x: {type: string}}, display: []}", "A is displayed by "),
      Case(
        "A: {keys: {x: {type: string}}}, B: {keys: {y: {type: string}}}",
        "A: {keys: {x: {type: string}}}, B: {extends: A, keys: {y: {type: string}}}",
        "B extends A; fetches of A return its objects too"),
      Case(
        "A: {access: {read: 'true', create: 'false'}, keys: {x: {type: string}}}",
        "A: {access: {read: 'identity != null', delete: 'true', keys: {x: {read: 'false'}}}, "
          + "keys: {x: {type: string}}}",
        "A has the access rule read: identity != null", "A has no access rule for create any more",
        "A has the access rule delete: true", "A.x has the access rule read: false"),
      Case(
        "P: {keys: {x: {type: string}}}, A: {extends: P}",
        "P: {keys: {x: {type: string}}}, A: {extends: P, access: {keys: {x: {read: 'false'}}}}",
        "A.x has the access rule read: false"),
    ])
  func automatic(of example: Case) throws {
    let fixture = try EvolutionFixture(example.old, example.new)
    #expect(fixture.evolution.changes.map(\.description) == example.changes)
    let report = try fixture.migrated().report
    #expect(report.changed == 0 && report.removed == 0)
  }

  @Test("Objects keep what they have, with their revisions, where nothing is filled in")
  func kept() throws {
    let fixture = try EvolutionFixture(
      "A: {keys: {x: {type: string}, many: {toMany: A}}}",
      "B: {}, A: {keys: {note: {type: string}, many: {toMany: A}, x: {type: string, indexed: true}, "
        + "twice: {computed: x + x}}}",
      data: ["A/1 {\"x\":\"a\"}", "A/2 {\"many\":[\"A/1\",\"A/2\"]}"])
    let migration = try fixture.migrated()
    #expect(
      objects(of: migration.state) == [
        #"{"@ref":"A/1","@revision":1,"note":null,"many":[],"x":"a","twice":"aa"}"#,
        #"{"@ref":"A/2","@revision":2,"note":null,"many":["A/1","A/2"],"x":null,"twice":null}"#,
      ])
    #expect(migration.report.description.hasSuffix("2 objects: 0 changed; 0 dropped"))
    #expect(migration.state.record(try ref("A/2"))?.createdAt == 2)
  }

  @Test("A default is given to objects that had no such key, in the revision of the migration")
  func defaults() throws {
    let fixture = try EvolutionFixture(
      "A: {keys: {x: {type: integer}}}, B: {}",
      "A: {keys: {x: {type: integer, default: 7}, y: {type: integer, optional: false, default: 3}}}, B: {}",
      data: ["A/1 {}", "B/1 {}"])
    let migration = try fixture.migrated()
    #expect(objects(of: migration.state)[0] == #"{"@ref":"A/1","@revision":3,"x":null,"y":3}"#)
    #expect(migration.state.record(try ref("B/1"))?.revision == 2)
    #expect(migration.report.changed == 1)
  }

  @Test("A new far side is filled from the one that is there")
  func farSides() throws {
    let fixture = try EvolutionFixture(
      "D: {}, E: {keys: {d: {toOne: D}}}, F: {extends: E}",
      "D: {keys: {all: {toMany: E, ordered: true, inverse: d}}}, E: {keys: {d: {toOne: D, inverse: all}}}, "
        + "F: {extends: E}",
      data: ["D/1", "D/2", "E/2 {\"d\":\"D/1\"}", "F/1 {\"d\":\"D/1\"}", "E/1 {\"d\":\"D/1\"}", "E/3"])
    let migration = try fixture.migrated()
    #expect(objects(of: migration.state)[0] == #"{"@ref":"D/1","@revision":7,"all":["E/1","E/2","F/1"]}"#)
    #expect(objects(of: migration.state)[1] == #"{"@ref":"D/2","@revision":2,"all":[]}"#)
    #expect(migration.report.changed == 1)
  }

  @Test("A new far side to one object may be required where each has one")
  func requiredFarSide() throws {
    let old = "A: {}, B: {keys: {a: {toOne: A}}}"
    let new = "A: {keys: {b: {toOne: B, inverse: a, optional: false}}}, B: {keys: {a: {toOne: A, inverse: b}}}"
    let whole = try EvolutionFixture(old, new, data: ["A/1", "B/1 {\"a\":\"A/1\"}", "B/2"])
    #expect(objects(of: try whole.migrated().state)[0] == #"{"@ref":"A/1","@revision":4,"b":"B/1"}"#)
    let lacking = try EvolutionFixture(old, new, data: ["A/1", "A/2", "B/1 {\"a\":\"A/1\"}"])
    #expect(
      try lacking.refusal() == ["A.b: is new and must have a value (1 object: A/2); `fill A.b VALUE`"])
    let crowded = try EvolutionFixture(old, new, data: ["A/1", "B/1 {\"a\":\"A/1\"}", "B/2 {\"a\":\"A/1\"}"])
    #expect(
      try crowded.refusal() == [
        "A.b: can hold only one object, but several name it (1 object: A/1 is named by \"B/1\" and \"B/2\"); `drop B.a`"
      ])
  }
}
