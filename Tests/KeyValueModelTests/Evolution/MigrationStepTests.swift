import Testing

@testable import KeyValueModel

@Suite("Migration steps as text")
struct MigrationStepTests {
  @Test(
    "A line is a step, and a step is a line",
    arguments: [
      ("rename A B", MigrationStep.renameEntity("A", to: "B")),
      ("rename A.x y", .renameKey(entity: "A", key: "x", to: "y")),
      ("drop A", .dropEntity("A")), ("drop A._x1", .dropKey(entity: "A", key: "_x1")),
      ("convert A.x", .convert(entity: "A", key: "x", fallback: nil)),
      ("convert A.x or null", .convert(entity: "A", key: "x", fallback: .null)),
      ("convert A.x or \"a b\"", .convert(entity: "A", key: "x", fallback: .string("a b"))),
      ("fill A.x {\"a\":[1,2.5]}", .fill(entity: "A", key: "x", .object(["a": .array([.integer(1), .number(2.5)])]))),
      ("set A.x = y + ' ' + z", .set(entity: "A", key: "x", expression: "y + ' ' + z")),
    ])
  func lines(line: String, step: MigrationStep) throws {
    #expect(try MigrationStep(line) == step)
    #expect(step.description == line)
    #expect(try MigrationStep("  \t\(line.replacing(" ", with: "  ", maxReplacements: 1)) \r") == step)
  }

  @Test(
    "A text that is not a step is refused with the reason",
    arguments: [
      ("", "is not a migration step; the steps are rename Entity NEW"), ("remove A", "is not a migration step"),
      ("rename", "'' is neither an Entity nor"), ("drop A.b.c", "'A.b.c' is neither"), ("drop 1A", "'1A' is neither"),
      ("drop A.", "'A.' is neither"), ("drop A.x-y", "'A.x-y' is neither"), ("drop A B", "nothing may follow 'A'"),
      ("rename A", "needs one new name"), ("rename A B C", "needs one new name"), ("rename A.x", "needs one new name"),
      ("rename A B.c", "an entity's name is a letter"), ("rename A.x A.y", "the new name must be a key alone"),
      ("convert A", "'convert' needs an Entity.key, not 'A'"), ("convert A.x 1", "takes 'or' and a JSON value"),
      ("convert A.x or", "'' is not JSON"), ("fill A 1", "'fill' needs an Entity.key"),
      ("fill A.x EUR", "'EUR' is not JSON: not a JSON value; a string needs quotation marks: \"EUR\""),
      ("fill A.x", "'' is not JSON"), ("fill A.x null", "'fill' needs a value, not null"),
      ("set A = 1", "'set' needs an Entity.key, not 'A'"), ("set A.x 1", "'set' takes '=' and an expression"),
      ("set A.x =", "'set' takes '=' and an expression"), ("set A.x", "'set' takes '=' and an expression"),
    ])
  func refused(line: String, reason: String) throws {
    let error = try #require(throws: MigrationStepError.self) { try MigrationStep(line) }
    #expect(error.description.contains(reason), "\(error)")
  }

  @Test("A file has a step a line, with remarks")
  func files() throws {
    let text = "# from 1.2 to 1.3\n\nrename A B\r\n  drop B.x\n"
    #expect(try MigrationStep.steps(inFile: text).map(\.description) == ["rename A B", "drop B.x"])
    #expect(try MigrationStep.steps(inFile: "") == [])
    let error = try #require(throws: MigrationStepError.self) { try MigrationStep.steps(inFile: "\n# a\ndrop 1") }
    #expect(error.description.hasPrefix("line 3: 'drop 1'"))
    let long = String(repeating: "\n", count: MigrationStep.maximumLines)
    #expect(throws: MigrationStepError.self) { try MigrationStep.steps(inFile: long) }
  }

  @Test(
    "A step that names what is not there, or a name that is taken, is an obstacle",
    arguments: [
      (["rename C D"], "step 'rename C D': the data has no entity 'C' at this step"),
      (["rename A B"], "step 'rename A B': the entity 'B' already exists"),
      (["drop A", "drop A.x"], "step 'drop A.x': the data has no entity 'A' at this step"),
      (["rename A.z y"], "step 'rename A.z y': A has no key 'z' at this step"),
      (["rename A.x y"], "step 'rename A.x y': A already has a key 'y'"),
      (["rename A.x s"], "step 'rename A.x s': S already has a key 's'"),
      (["drop A.c"], "step 'drop A.c': 'c' of A is computed; steps are for stored keys only"),
      (["convert A.z"], "step 'convert A.z': A has no key 'z' at this step"),
      (["convert A.gone"], "step 'convert A.gone': the new schema has no stored key 'gone' in A"),
      (["fill A.z 1"], "step 'fill A.z 1': the new schema has no stored key 'z' in A"),
      (["fill C.z 1"], "step 'fill C.z 1': the new schema has no entity 'C'"),
      (["fill A.x 1"], "step 'fill A.x 1': the value must be a string, not a number"),
      (["fill A.c 1"], "step 'fill A.c 1': the new schema has no stored key 'c' in A"),
      (["fill A.m 1"], "step 'fill A.m 1': the value cannot be filled in: 'm' is a collection, which is never null"),
      (["fill A.b \"A/1\""], "step 'fill A.b \"A/1\"': the value is not a reference to B"),
    ])
  func mistakes(steps: [String], sentence: String) throws {
    let keys = "x: {type: string}, y: {type: string}, m: {toMany: string}, b: {toOne: B}, c: {computed: x}"
    let fixture = try EvolutionFixture(
      "A: {keys: {\(keys), gone: {type: string}}}, S: {extends: A, keys: {s: {type: string}}}, B: {}",
      "A: {keys: {\(keys)}}, S: {extends: A, keys: {s: {type: string}}}, B: {}", steps: steps)
    #expect(try fixture.refusal() == [sentence])
  }

  @Test(
    "A name that is nearly right is named, and nothing else that stands in the way",
    arguments: [
      ("set Person.nmae = first", "the new schema has no stored key 'nmae' in Person; did you mean 'name'?"),
      ("fill Person.nmae \"a\"", "the new schema has no stored key 'nmae' in Person; did you mean 'name'?"),
      ("fill Persno.name \"a\"", "the new schema has no entity 'Persno'; did you mean 'Person'?"),
      ("set Persno.name = first", "the data has no entity 'Persno' at this step; did you mean 'Person'?"),
      ("drop Person.frist", "Person has no key 'frist' at this step; did you mean 'first'?"),
    ])
  func nearMistakes(step: String, sentence: String) throws {
    let fixture = try EvolutionFixture(
      "Person: {keys: {first: {type: string}}}", "Person: {keys: {name: {type: string, optional: false}}}",
      data: ["Person/1 {\"first\":\"a\"}"], steps: [step])
    #expect(try fixture.refusal() == ["step '\(step)': \(sentence)"])
  }
}
