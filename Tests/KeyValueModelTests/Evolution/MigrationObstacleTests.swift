import Testing

@testable import KeyValueModel

@Suite("Obstacles to a new schema")
struct MigrationObstacleTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let old: String
    let new: String
    let data: [String]
    var steps: [String] = []
    /// The expected obstacles, one a line.
    let met: [String]

    var testDescription: String { "\(old) → \(new)" }
  }

  private static let people = [
    "A/1 {\"x\":1}", "A/2 {\"x\":-2}", "A/3 {}", "A/4 {\"x\":-4}", "A/5 {\"x\":-5}", "A/6 {\"x\":-6}",
  ]

  @Test(
    "Each is said with its place, the first objects and the step for it",
    arguments: [
      Case(
        old: "A: {}, B: {}", new: "B: {}", data: ["A/1", "A/2"],
        met: ["A: is not in the new schema (2 objects: A/1, A/2); `drop A`, or `rename A NEW`"]),
      Case(
        old: "A: {keys: {x: {type: integer}}}", new: "A: {}", data: people,
        met: ["A.x: is not in the new schema (5 objects: A/1, A/2, A/4, …); `drop A.x`, or `rename A.x NEW`"]),
      Case(
        old: "A: {keys: {x: {type: integer}}}", new: "A: {keys: {x: {computed: '1'}}}", data: people,
        met: ["A.x: is stored and becomes computed (5 objects: A/1, A/2, A/4, …); `drop A.x`"]),
      Case(
        old: "A: {keys: {x: {type: integer}}}", new: "A: {keys: {x: {type: string}}}", data: people,
        met: ["A.x: integer becomes string (5 objects: A/1, A/2, A/4, …); `convert A.x`"]),
      Case(
        old: "A: {keys: {x: {toOne: A}}}", new: "A: {keys: {x: {toMany: A}}}", data: ["A/1 {\"x\":\"A/1\"}"],
        met: ["A.x: toOne becomes toMany (1 object: A/1); `convert A.x`"]),
      Case(
        old: "A: {keys: {x: {toMany: string}}}", new: "A: {keys: {x: {toMany: integer}}}",
        data: ["A/1 {\"x\":[\"a\"]}"],
        met: ["A.x: toMany of string becomes toMany of integer (1 object: A/1); `convert A.x`"]),
      Case(
        old: "A: {keys: {x: {type: integer}}}", new: "A: {keys: {x: {type: integer, minimum: 0}}}", data: people,
        met: [
          "A.x: has values that break the new constraints (4 objects: A/2 is -2, under the minimum 0; "
            + "A/4 is -4, under the minimum 0; A/5 is -5, under the minimum 0; …); `convert A.x or null`"
        ]),
      Case(
        old: "A: {keys: {x: {type: string, optional: false}}}",
        new: "A: {keys: {x: {type: string, optional: false, maxLength: 2, pattern: '^a', enum: [a]}}}",
        data: ["A/1 {\"x\":\"a\"}", "A/2 {\"x\":\"b\"}", "A/3 {\"x\":\"abc\"}"],
        met: [
          "A.x: has values that break the new constraints (2 objects: A/2 does not match the pattern ^a; "
            + "A/3 has 3 characters, more than maxLength 2); `convert A.x or VALUE`"
        ]),
      Case(
        old: "A: {keys: {x: {toMany: integer}}}", new: "A: {keys: {x: {toMany: integer, maximum: 2}}}",
        data: ["A/1 {\"x\":[1,2,3,4]}"],
        met: [
          "A.x: has values that break the new constraints (1 object: A/1 is 3, over the maximum 2); "
            + "`convert A.x or null`"
        ]),
      Case(
        old: "A: {keys: {x: {type: integer}}}", new: "A: {keys: {x: {type: integer, optional: false}}}", data: people,
        met: ["A.x: must have a value (1 object: A/3); `fill A.x VALUE`"]),
      Case(
        old: "A: {}, B: {extends: A}", new: "A: {keys: {x: {type: integer, optional: false}}}, B: {extends: A}",
        data: ["B/1", "A/1"],
        met: ["A.x: is new and must have a value (2 objects: A/1, B/1); `fill A.x VALUE`"]),
      Case(
        old: "A: {keys: {x: {toOne: A}}}, B: {extends: A}", new: "A: {keys: {x: {toOne: B}}}, B: {extends: A}",
        data: ["B/1", "A/1 {\"x\":\"B/1\"}", "A/2 {\"x\":\"A/1\"}"],
        met: [
          "A.x: has values that the key cannot hold (1 object: A/2 names A/1, which is not an object of B); "
            + "`convert A.x or null`"
        ]),
      Case(
        old: "A: {keys: {x: {toOne: A}}}, B: {extends: A}",
        new: "A: {keys: {x: {toOne: A}}}, B: {keys: {x: {toOne: A}}}",
        data: ["A/1", "B/1 {\"x\":\"A/1\"}", "A/2 {\"x\":\"B/1\"}"],
        met: [
          "A.x: has values that the key cannot hold (1 object: A/2 names B/1, which is not an object of A); "
            + "`convert A.x or null`"
        ]),
      Case(
        old: "A: {keys: {x: {toMany: integer, ordered: true}}}", new: "A: {keys: {x: {toMany: integer}}}",
        data: ["A/1 {\"x\":[1,2,3]}", "A/2 {\"x\":[2,1]}"],
        met: [
          "A.x: is no longer ordered, and the order of its members would be lost (1 object: A/2); `convert A.x`"
        ]),
      Case(
        old: "A: {keys: {x: {toOne: A}, y: {toMany: A}}}",
        new: "A: {keys: {x: {toOne: A, inverse: y}, y: {toMany: A, inverse: x}}}",
        data: ["A/1", "A/2 {\"x\":\"A/1\"}", "A/3 {\"y\":[\"A/1\",\"A/2\"]}"],
        met: [
          "A.x: does not agree with its inverse A.y (1 object: A/2 names A/1, which does not name it); "
            + "`drop A.y`, which is then filled from here",
          "A.y: does not agree with its inverse A.x (1 object: A/3 names A/1, which does not name it); "
            + "`drop A.x`, which is then filled from here",
        ]),
      Case(
        old: "P: {keys: {x: {type: string}}}, A: {extends: P}, B: {extends: A}",
        new: "P: {}, A: {extends: P}, B: {extends: A}",
        data: ["P/1 {\"x\":\"1\"}", "A/1 {\"x\":\"1\"}", "B/1 {\"x\":\"1\"}"],
        met: ["P.x: is not in the new schema (3 objects: A/1, B/1, P/1); `drop P.x`, or `rename P.x NEW`"]),
      Case(
        old: "P: {keys: {x: {type: string}}}, A: {extends: P}, B: {extends: A}",
        new: "P: {keys: {x: {type: string}}}, A: {}, B: {extends: A}",
        data: ["P/1 {\"x\":\"1\"}", "A/1 {\"x\":\"1\"}", "B/1 {\"x\":\"1\"}"],
        met: ["A.x: is not in the new schema (2 objects: A/1, B/1); `drop A.x`, or `rename A.x NEW`"]),
      Case(
        old: "P: {keys: {x: {type: string}}}, A: {extends: P}",
        new: "P: {}, A: {extends: P, keys: {x: {type: integer}}}",
        data: ["P/1", "A/1 {\"x\":\"1\"}"],
        met: ["A.x: string becomes integer (1 object: A/1); `convert A.x`"]),
    ])
  func obstacles(of example: Case) throws {
    let empty = try EvolutionFixture(example.old, example.new)
    // Without objects, nothing can be lost.
    _ = try empty.migrated()
    let fixture = try EvolutionFixture(example.old, example.new, data: example.data, steps: example.steps)
    #expect(try fixture.refusal() == example.met)
  }

  @Test("Of many, the first hundred are told")
  func bounded() throws {
    let keys = (100..<250).map { "k\($0): {type: integer}" }.joined(separator: ", ")
    let values = (100..<250).map { "\"k\($0)\":1" }.joined(separator: ",")
    let fixture = try EvolutionFixture("A: {keys: {\(keys)}}", "A: {}", data: ["A/1 {\(values)}"])
    let error = try #require(throws: MigrationRefusal.self) {
      try fixture.evolution.migrated(fixture.before.state, revision: 9)
    }
    #expect(error.count == 150)
    #expect(error.obstacles.count == 100)
    let lines = error.description.split(separator: "\n")
    #expect(lines.first == "the data cannot be used under the new schema; 150 obstacles:")
    #expect(lines.last == "  and 50 more")
    #expect(lines.count == 102)
  }

  @Test("Long values are abbreviated")
  func longValues() throws {
    let fixture = try EvolutionFixture(
      "A: {keys: {x: {type: string}}}", "A: {keys: {x: {type: string, enum: [a]}}}",
      data: ["A/1 {\"x\":\"\(String(repeating: "x", count: 10_000))\"}"])
    #expect(try fixture.refusal()[0].utf8.count < 400)
  }

  @Test("A mistake is told without the obstacles that it may have left, and those without it, and nothing twice")
  func mistakeAlone() throws {
    func refusal(_ steps: [String]) throws -> [String] {
      try EvolutionFixture(
        "A: {keys: {x: {type: string}, b: {toOne: B, optional: false}}}, B: {}",
        "A: {keys: {x: {type: integer, optional: false}, b: {toOne: A, optional: false}}}",
        data: ["B/1", "A/1 {\"x\":\"a\",\"b\":\"B/1\"}"], steps: steps
      ).refusal()
    }
    #expect(try refusal(["drop C"]) == ["step 'drop C': the data has no entity 'C' at this step"])
    #expect(
      try refusal([]) == [
        "A.x: string becomes integer (1 object: A/1); `convert A.x`",
        "B: is not in the new schema (1 object: B/1); `drop B`, or `rename B NEW`",
      ])
  }
}
