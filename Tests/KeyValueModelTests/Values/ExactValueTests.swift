import KeyValueModel
import Testing

@Suite("Values that must not lose anything")
struct ExactValueTests {
  private static let schema = """
    entities:
      Account:
        keys:
          count: { type: integer }
          counts: { toMany: integer, ordered: true }
          rate: { type: number }
          changed: { type: number, notifies: changed }
          K: { type: json }
          isZero: { type: boolean, computed: "rate == 0.0" }
    """

  @Test(
    "An integer takes the numbers that it holds exactly, however they are written",
    arguments: [
      ("1.0", "1"), ("1e3", "1000"), ("-0.0", "0"), ("1200e-2", "12"), ("9007199254740993.0", "9007199254740993"),
      ("9.223372036854775807e18", "9223372036854775807"), ("9.223372036854775e+18", "9223372036854775000"),
      ("-9223372036854775808", "-9223372036854775808"), ("-9223372036854775808.0", "-9223372036854775808"),
    ])
  func integers(text: String, integer: String) throws {
    var fixture = try Fixture(Self.schema)
    try fixture.create("Account/1", #"{"count":\#(text),"counts":[\#(text)]}"#)
    #expect(try fixture.value("Account/1", "count") == integer)
    #expect(try fixture.value("Account/1", "counts") == "[\(integer)]")
  }

  @Test(
    "An integer refuses all others, never to take the nearest one",
    arguments: [
      "-9223372036854775809", "9223372036854775808", "1e19", "-1e19", "1.5", "1.00000000000000000001",
      "4503599627370497.5", "9007199254740992.5", "1e-400", "-9223372036854775808.5", "9.3e18",
    ])
  func noIntegers(text: String) throws {
    var fixture = try Fixture(Self.schema)
    try fixture.create("Account/1")
    for (key, value) in [("count", text), ("counts", "[\(text)]")] {
      let operation = Operation.set(try ref("Account/1"), keyPath: key, try json(value))
      #expect(try fixture.error([operation]).code == .invalidValue)
    }
    // A key of type number rounds to the nearest double, and so does a number in a JSON value.
    try fixture.patch("Account/1", #"{"rate":\#(text),"K":{"a":[\#(text)]}}"#)
    let double = try #require(Double(text))
    #expect(try fixture.value("Account/1", "rate") == Value.number(double).json)
    #expect(try fixture.value("Account/1", "K") == #"{"a":[\#(Value.number(double).json)]}"#)
    let mistake = #expect(throws: SchemaError.self) {
      try Schema(yaml: "entities: { A: { keys: { n: { type: integer, default: \(text) } } } }")
    }
    #expect(mistake?.problems.count == 1)
  }

  @Test("-0.0 comes back as -0.0, equals 0.0 in an expression, and is a change of it")
  func minusZero() throws {
    var fixture = try Fixture(Self.schema)
    try fixture.create("Account/1", #"{"rate":-0.0,"changed":0.0}"#)
    #expect(try fixture.value("Account/1", "rate") == "-0.0")
    #expect(try fixture.value("Account/1", "isZero") == "true")
    let commit = try fixture.commit(.set(try ref("Account/1"), keyPath: "changed", .number(-0.0)))
    guard case .change(let changes) = commit.steps[0].kind else { throw NotAnObject() }
    #expect(changes.map(\.isSilent) == [false])
    #expect(try fixture.value("Account/1", "changed") == "-0.0")
  }

  @Test("Names are compared code point by code point, in patches, pointers and keys")
  func names() throws {
    var fixture = try Fixture(Self.schema)
    let (composed, decomposed, kelvin) = ("\u{E9}", "e\u{301}", "\u{212A}")
    try fixture.create("Account/1", "{\"K\":{\"\(composed)\":1,\"\(decomposed)\":2}}")
    try fixture.patch("Account/1", "{\"K\":{\"\(composed)\":3}}")
    #expect(try fixture.value("Account/1", "K") == "{\"\(composed)\":3,\"\(decomposed)\":2}")
    let patch = try JSONPatch(json("[{\"op\":\"move\",\"from\":\"/K/\(composed)\",\"path\":\"/K/\(decomposed)\"}]"))
    try fixture.commit(.jsonPatch(try ref("Account/1"), patch))
    #expect(try fixture.value("Account/1", "K") == "{\"\(decomposed)\":3}")
    // The sign of the kelvin is canonically equivalent to the letter.
    let error = try fixture.error([.patch(try ref("Account/1"), [kelvin: .null])])
    #expect(error.code == .invalidValue)
  }
}
