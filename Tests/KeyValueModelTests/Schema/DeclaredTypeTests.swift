import Testing

@testable import KeyValueModel

/// A computed key has a value of the type that the schema declares for it, or none.
@Suite("Declared types of computed keys") struct DeclaredTypeTests {
  private static let types = ["integer", "number", "string", "boolean", "date"]
  private static let schema = """
    entities:
      A:
        keys:
          j: { type: json }
          ns: { toMany: integer }
          sum: { type: integer, computed: "ns.@sum.self" }
          any: { computed: "ns.@sum.self" }
          unsigned: { type: integer, computed: "18446744073709551615u" }
          small: { type: integer, computed: "uint(size(ns))" }
          next: { toOne: A }
          far: { computed: next.byPathinteger }
          seen: { type: json, computed: "[byPathinteger, byExpressioninteger]" }
          same: { type: json, computed: "{'a': j}" }
    \(types.map { "      byPath\($0): { type: \($0), computed: j }" }.joined(separator: "\n"))
    \(types.map { "      byExpression\($0): { type: \($0), computed: \"dyn(j)\" }" }.joined(separator: "\n"))
    """

  /// What each type makes of a JSON value: nil where it has no such value.
  private static let values: [(json: String, made: [String?])] = [
    ("null", ["null", "null", "null", "null", "null"]), ("7", ["7", "7", nil, nil, nil]),
    ("7.0", ["7", "7", nil, nil, nil]), ("7.5", [nil, "7.5", nil, nil, nil]),
    ("1e300", [nil, "1e+300", nil, nil, nil]),
    ("9223372036854775807", ["9223372036854775807", "9.223372036854776e+18", nil, nil, nil]),
    (#""x""#, [nil, nil, #""x""#, nil, nil]), (#""7""#, [nil, nil, #""7""#, nil, nil]),
    ("true", [nil, nil, nil, "true", nil]),
    (#""2010-03-01""#, [nil, nil, #""2010-03-01""#, nil, #""2010-03-01""#]),
    (#""2010-02-30""#, [nil, nil, #""2010-02-30""#, nil, nil]), ("[7]", [nil, nil, nil, nil, nil]),
    (#"{"a":7}"#, [nil, nil, nil, nil, nil]),
  ]

  @Test("What the formula gives is made one of the declared type, or null, wherever it is read")
  func conversion() throws {
    var fixture = try Fixture(Self.schema)
    try fixture.create("A/1")
    try fixture.create("A/2", #"{"next":"A/1"}"#)
    for (json, made) in Self.values {
      try fixture.set("A/1", "j", json)
      for (type, expected) in zip(Self.types, made) {
        #expect(try fixture.value("A/1", "byPath\(type)") == expected ?? "null", "\(json) by a path as \(type)")
        #expect(try fixture.value("A/1", "byExpression\(type)") == expected ?? "null", "\(json) as \(type)")
      }
      let integer = made[0] ?? "null"
      #expect(try fixture.value("A/2", "far") == integer)
      #expect(try fixture.value("A/1", "seen") == "[\(integer),\(integer)]")
    }
    #expect(try fixture.value("A/1", "same") == #"{"a":{"a":7}}"#)
  }

  @Test("An integer beyond 64 bits is none, and counts as a failure of an expression")
  func integers() throws {
    var fixture = try Fixture(Self.schema)
    try fixture.create("A/1", #"{"ns":[9223372036854775806,1]}"#)
    #expect(try fixture.value("A/1", "sum") == "9223372036854775807")
    try fixture.set("A/1", "ns", "[9223372036854775806,2]")
    #expect(try fixture.value("A/1", "sum") == "null")
    #expect(try fixture.value("A/1", "any") == "9.223372036854776e+18")
    #expect(try fixture.value("A/1", "small") == "2")
    let before = fixture.model.schema.expressionFailures.map(\.count).reduce(0, +)
    #expect(try fixture.value("A/1", "unsigned") == "null")
    #expect(fixture.model.schema.expressionFailures.map(\.count).reduce(0, +) == before + 1)
  }
}
