import Testing

@testable import KeyValueModel

@Suite("Comparisons that can never hold")
struct LiteralComparisonTests {
  private static let yaml = """
    entities:
      Port:
        keys:
          name:   { type: string }
          state:  { type: string, enum: [open, shut] }
          level:  { type: integer, enum: [1, 2, 3] }
          size:   { type: integer }
          depth:  { type: number }
          since:  { type: date }
          season: { type: date, enum: ["2010-03-01", "2010-06-01T00:00:00Z"] }
          extra:  { type: json }
          tags:   { toMany: string }
          flags:  { toMany: string, enum: [red, green] }
          lanes:  { toMany: integer, ordered: true }
          extras: { toMany: json }
          owner:  { toOne: Person, inverse: ports }
          double: { computed: size * 2 }
      Person:
        keys:
          ports: { toMany: Port, inverse: owner }
          next:  { toOne: Person }
      Captain: { extends: Person, keys: {} }
    """

  private static func mistake(_ text: String, of entity: String = "Port") throws -> String? {
    let schema = try Schema(yaml: yaml)
    let entity = try schema.requireEntity(entity)
    do throws(KeyExpression.Mistake) {
      _ = try Filter(text, of: entity, in: schema)
      return nil
    } catch {
      return "\(error.line):\(error.column): \(error.message)"
    }
  }

  @Test(
    "The literal is named, with its place and with what was meant",
    arguments: [
      ("state == 'opn'", "1:10: 'state' is never 'opn': its enum has \"open\", \"shut\"; did you mean 'open'?"),
      ("'ajar' != state", "1:1: 'state' is never 'ajar': its enum has \"open\", \"shut\""),
      ("size > 1 &&\n this.state == 'wide'", "2:16: 'state' is never 'wide': its enum has \"open\", \"shut\""),
      ("level == 4", "1:10: 'level' is never 4: its enum has 1, 2, 3"),
      ("size == 1.5", "1:9: 'size' is an integer and never 1.5"),
      ("18446744073709551615u != size", "1:1: 'size' is an integer and never 18446744073709551615u"),
      ("double == 0.5", "1:11: 'double' is an integer and never 0.5"),
      ("flags.exists(f, f == 'blue')", "1:22: a member of 'flags' is never 'blue': its enum has \"red\", \"green\""),
      (
        "owner.ports.all(p, p.flags.filter(f, f != null)[0] != 'gren')",
        "1:55: a member of 'flags' is never 'gren': its enum has \"red\", \"green\"; did you mean 'green'?"
      ),
      ("lanes[0] == 1.5", "1:13: a member of 'lanes' is an integer and never 1.5"),
      (
        "(depth > 1.0 ? state : this.state) == 'wide'", "1:39: 'state' is never 'wide': its enum has \"open\", \"shut\""
      ),
      ("(depth > 1.0 ? null : state) == 'wide'", "1:33: 'state' is never 'wide': its enum has \"open\", \"shut\""),
      ("[state, null][0] == 'wide'", "1:21: 'state' is never 'wide': its enum has \"open\", \"shut\""),
      ("max(flags) == 'blue'", "1:15: a member of 'flags' is never 'blue': its enum has \"red\", \"green\""),
      (
        "min(owner.ports.map(p, p.state)) == 'wide'", "1:37: 'state' is never 'wide': its enum has \"open\", \"shut\""
      ),
      (
        "owner.ports.map(p, p.state).exists(s, s == 'wide')",
        "1:44: 'state' is never 'wide': its enum has \"open\", \"shut\""
      ),
      ("size(tags) == 1.5", "1:15: a whole number is never 1.5"),
      ("-0.5 != size + 1", "1:1: a whole number is never -0.5"),
      ("name.size() == 1e30", "1:16: a whole number is never 1e+30"),
      ("int(depth) == 18446744073709551615u", "1:15: a whole number is never 18446744073709551615u"),
      ("uint(size) == -1", "1:15: a whole number is never -1"),
      ("tags.map(t, size(t)).exists(n, n == 0.1)", "1:37: a whole number is never 0.1"),
      ("owner == 'Person'", "1:10: 'Person' is not a reference such as Person/1"),
      ("owner != 'Port/1'", "1:10: 'Port/1' is not an object of Person, as the other side is"),
      ("owner.next == 'Persn/1'", "1:15: the schema has no entity 'Persn'; did you mean 'Person'?"),
      ("this == 'Person/1'", "1:9: 'Person/1' is not an object of Port, as the other side is"),
      (
        "owner.ports.exists(p, p.state == 'opne')",
        "1:34: 'state' is never 'opne': its enum has \"open\", \"shut\"; did you mean 'open'?"
      ),
      (
        "season == timestamp('2010-03-02T00:00:00Z')",
        "1:11: 'season' is never 2010-03-02T00:00:00Z: its enum has \"2010-03-01\", "
          + "\"2010-06-01T00:00:00Z\""
      ),
      (
        "since < timestamp('2010-02-30T00:00:00Z')",
        "1:19: '2010-02-30T00:00:00Z' is not a timestamp such as 2010-03-01T12:00:00Z"
      ),
      ("timestamp('soon') == since", "1:11: 'soon' is not a timestamp such as 2010-03-01T12:00:00Z"),
      ("since == 'soon'", "1:7: no such overload: timestamp == string; write timestamp(…) around the string"),
      ("name == 1", "1:6: no such overload: string == int"), ("true < size", "1:6: no such overload: bool < int"),
      ("depth >= 'a'", "1:7: no such overload: double >= string"),
      ("owner == 1", "1:7: no such overload: Person == int"),
      ("nme == 'a'", "1:1: undeclared reference to 'nme'; did you mean 'name'?"),
      ("owner.prts == null", "1:7: Person has no key 'prts'; did you mean 'ports'?"),
      ("size * depth > 1.0", "1:6: no such overload: int * double; write double(…) around the int"),
      ("size = 1", "1:6: unexpected character '='; to compare, write '=='"),
    ])
  func mistakes(text: String, expected: String) throws {
    #expect(try Self.mistake(text) == expected)
  }

  @Test(
    "A comparison that may hold is valid, so are null, 'in', the order of an enum's words, and unknown types",
    arguments: [
      "state == 'open'", "state == null", "state in ['wide', 'open']", "state < 'p'", "'wide' >= state", "level == 2.0",
      "level < 9", "size == 2.0", "size < 1.5", "depth == 1", "extra == 'a'", "extra.b == 1.5", "owner == 'Person/7'",
      "owner == 'Captain/7'", "this == 'Port/1'", "'Person' in tags",
      "season == timestamp('2010-06-01T02:00:00+02:00')",
      "season == timestamp('2010-03-01T00:00:00Z')", "since < timestamp('2010-03-01T12:00:00Z')", "name == 'Port/1'",
      "owner.next == this.owner", "size > 9223372036854775807",
      "size(tags) == 2.0", "size(tags) < 1.5", "size + 1 == 3u", "uint(size) == 18446744073709551615u", "1 == 1.5",
      "uint(size) == 1", "flags.exists(f, f == 'red')", "'blue' in flags", "lanes.exists(state, state == 4)",
      "flags.map(f, f + '').exists(f, f == 'blue')",
      "(depth > 1.0 ? state : name) == 'wide'", "(depth > 1.0 ? state : 'wide') == 'wide'",
      "[state, name][1] == 'wide'",
      "(depth > 1.0 ? flags : tags).exists(f, f == 'blue')", "max(tags + flags) == 'blue'",
      "extras.exists(e, (depth > 1.0 ? e : flags).exists(f, f == 'blue'))", "[] == []",
      "lanes[0] < 1.5", "math.round(depth) == 1.5",
    ])
  func holding(text: String) throws {
    #expect(try Self.mistake(text) == nil)
  }

  @Test("In a schema they stand at their line and column, in computed keys and in rules")
  func schema() throws {
    try SchemaMistakesTests.check(
      .init(
        "'s' is never 'c'",
        """
        entities:
          A:
            keys:
              s: {type: string, enum: [a, b]}
              t: {computed: s == ¶'c'}
        """))
    try SchemaMistakesTests.check(
      .init(
        "access: 's' is never 'c'",
        """
        entities:
          A:
            access: { read: s != ¶'c' }
            keys:
              s: {type: string, enum: [a, b]}
        """))
    try SchemaMistakesTests.check(
      .init(
        "access: 'B/1' is not an object of A",
        """
        entities:
          A:
            access:
              update: before.next == ¶'B/1'
            keys:
              next: {toOne: A}
          B: {keys: {}}
        """))
    try SchemaMistakesTests.check(
      .init("one of string, integer, number, boolean, date, json; did you mean 'boolean'?", key: "x: {type: ¶bool}"))
    try SchemaMistakesTests.check(.init("; did you mean 'integer'?", key: "x: {type: ¶int}"))
    try SchemaMistakesTests.check(.init("; did you mean 'number'?", key: "x: {type: ¶numbr}"))
    try SchemaMistakesTests.check(.init("the schema has no entity 'a'; did you mean 'A'?", key: "x: {toOne: ¶a}"))
  }

  @Test("A name that is misspelt is answered with the nearest")
  func names() throws {
    let schema = try Schema(yaml: Self.yaml)
    #expect(throws: ModelError(.unknownEntity, "the schema has no entity 'Prot'; did you mean 'Port'?")) {
      try schema.requireEntity("Prot")
    }
    #expect(throws: ModelError(.unknownEntity, "the schema has no entity 'Harbour'")) {
      try schema.requireEntity("Harbour")
    }
    let port = try schema.requireEntity("Port")
    #expect(throws: ModelError(.undefinedKey, "Port has no key 'sise'; did you mean 'size'?", keyPath: "sise")) {
      try schema.resolve("sise", from: port)
    }
    let path = "owner.nxet"
    #expect(throws: ModelError(.undefinedKey, "Person has no key 'nxet'; did you mean 'next'?", keyPath: path)) {
      try schema.resolve(path, from: port)
    }
  }
}
