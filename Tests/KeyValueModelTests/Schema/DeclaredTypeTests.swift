import KeyValueModel
import Testing

@Suite("The type that a schema states for a computed key")
struct DeclaredTypeTests {
  private static let yaml = """
    entities:
      A:
        keys:
          j:  { type: json }
          n:  { type: integer }
          m:  { toMany: A, ordered: true }
          pn: { type: number, computed: j }
          en: { type: number, computed: "[j][0]" }
          ni: { type: number, computed: "size(m)" }
          pi: { type: number, computed: n }
          at: { type: date, computed: j }
          of: { type: number, computed: "ni / 2.0 + pi" }
      B: { extends: A, keys: { pn: { computed: n } } }
    """

  @Test(
    "Values are of it, in paths, operators and expressions, and null where they cannot be",
    arguments: [
      ("A/1", "pn", "2.5"), ("A/1", "en", "2.5"), ("A/1", "ni", "3"), ("A/1", "pi", "3"), ("A/1", "at", "null"),
      ("A/1", "of", "4.5"), ("A/2", "pn", "null"), ("A/2", "en", "null"), ("A/2", "at", #""2010-03-01""#),
      ("B/1", "pn", "7"), ("A/1", "m.@sum.pn", "9.5"), ("A/1", "m.@max.pn", "7"), ("A/1", "m.@sum.ni", "3"),
      ("A/1", "m.@max.at", #""2010-03-01""#),
    ])
  func values(object: String, keyPath: String, value: String) throws {
    var fixture = try Fixture(Self.yaml)
    try fixture.create("A/1", #"{"j":2.5,"n":3}"#)
    try fixture.create("A/2", #"{"j":"2010-03-01"}"#)
    try fixture.create("B/1", #"{"j":{},"n":7}"#)
    try fixture.set("A/1", "m", #"["A/1","A/2","B/1"]"#)
    #expect(try fixture.value(object, keyPath) == value)
  }

  @Test(
    "Filters are read by it",
    arguments: [
      ("pn + 1.0 > 0.0", true), ("ni + 1.0 > 0.0", true), ("pi * 2.0 > en", true), ("at.getFullYear() == 2010", true),
      ("pn == 'a'", false), ("en == 'a'", false), ("pi + 1 > 0", false), ("at == 1", false),
    ])
  func filters(text: String, isGood: Bool) throws {
    let schema = try Schema(yaml: Self.yaml)
    let filter = try? Filter(text, of: schema.requireEntity("A"), in: schema)
    #expect((filter != nil) == isGood)
  }
}
