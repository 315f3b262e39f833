import KeyValueModel
import TestKit
import Testing

@Suite("Writing JSON")
struct JSONRoundTripTests {
  @Test(
    "Values are written compactly, with the escapes that are needed and no others",
    arguments: [
      (Value.null, "null"), (.bool(true), "true"), (.integer(.min), "-9223372036854775808"),
      (.number(100), "100"), (.number(-0.0), "-0.0"), (.number(0.1), "0.1"), (.number(1e300), "1e+300"),
      (.number(1e-7), "1e-07"), (.string("é😀/"), "\"é😀/\""), (.string("\"\\"), #""\"\\""#),
      (.string("\u{8}\u{c}\n\r\t"), #""\b\f\n\r\t""#), (.string("\u{0}\u{1f}\u{7f}"), "\"\\u0000\\u001f\u{7f}\""),
      (.array([.integer(1), .string("a")]), "[1,\"a\"]"),
      (.object(["b": .null, "a": .array([])]), #"{"b":null,"a":[]}"#),
      (.object(["\"": .bool(false)]), #"{"\"":false}"#),
    ])
  func written(value: Value, text: String) {
    #expect(value.json == text)
  }

  @Test("Text of any length is escaped byte by byte, wherever what must be escaped stands")
  func escapes() {
    var random = SplitMix64(seed: seed)
    let scalars: [Unicode.Scalar] = [
      "\"", "\\", "\u{0}", "\u{1f}", " ", "!", "#", "[", "]", "a", "\u{7f}", "é", "😀", "\n", "\u{85}", "\u{2028}",
      "\u{2029}", "\u{84}", "\u{86}", "\u{2027}", "\u{202a}", "\u{2068}", "€", "Â",
    ]
    for _ in 0..<20_000 {
      var text = String.UnicodeScalarView()
      for _ in 0..<Int.random(in: 0..<40, using: &random) {
        text.append(random.chance(70) ? "a" : scalars.randomElement(using: &random) ?? "a")
      }
      let plain = text.map { scalar in
        switch scalar {
        case "\"": "\\\""
        case "\\": "\\\\"
        case "\n": "\\n"
        case "\u{0}": "\\u0000"
        case "\u{1f}": "\\u001f"
        case "\u{85}": "\\u0085"
        case "\u{2028}": "\\u2028"
        case "\u{2029}": "\\u2029"
        default: String(scalar)
        }
      }
      #expect(Value.string(String(text)).json == "\"\(plain.joined())\"", "seed \(seed)")
    }
  }

  @Test("Up to a limit a value is written like without one, and beyond it no more than a little")
  func bounded() throws {
    let text = String(repeating: "x", count: 10_000)
    for value in [
      Value.string(text), .array([.integer(1), .string(text)]), .object(["a": .string(text), "b": .null]),
    ] {
      let whole = Array(value.json.utf8)
      for limit in [0, 1, 5, 100, whole.count - 1, whole.count, whole.count + 1] {
        var bytes: [UInt8] = []
        let isWhole = value.appendJSON(to: &bytes, upTo: limit)
        #expect(isWhole == (whole.count <= limit))
        if isWhole { #expect(bytes == whole) } else { #expect(bytes.count > limit && bytes.count < limit + 100) }
      }
    }
  }

  @Test("A reference is written as a string")
  func reference() throws {
    #expect(Value.reference(try ref("Person/1")).json == "\"Person/1\"")
  }

  @Test("Doubles of any bit pattern come back as the same double")
  func doubles() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<20_000 {
      let number = Double(bitPattern: random.next())
      guard number.isFinite else { continue }
      let back = try json(Value.number(number).json)
      let bits: UInt64? =
        switch back {
        case .number(let back): back.bitPattern
        case .integer(let back): Double(back).bitPattern
        default: nil
        }
      #expect(bits == number.bitPattern, "\(number), seed \(seed)")
    }
  }

  @Test("64-bit integers come back exactly")
  func integers() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<5_000 {
      let integer = Int64(truncatingIfNeeded: random.next() >> (random.next() % 64))
      #expect(try json(Value.integer(integer).json) == .integer(integer), "seed \(seed)")
    }
  }

  @Test("Random values are the same after writing and reading")
  func fuzzRoundTrip() throws {
    var random = SplitMix64(seed: seed)
    for round in 0..<3_000 {
      let value = Self.value(depth: 4, &random)
      let back = try json(value.json)
      #expect(back == value && back.hashValue == value.hashValue, "round \(round), seed \(seed): \(value.json)")
      #expect(back.json == value.json, "round \(round), seed \(seed)")
    }
  }

  private static func value(depth: Int, _ random: inout SplitMix64) -> Value {
    switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &random) {
    case 0: return .null
    case 1: return .bool(Bool.random(using: &random))
    case 2: return .integer(Int64(truncatingIfNeeded: random.next()))
    case 3:
      let number = Double(bitPattern: random.next())
      // Whole doubles are written like integers and come back as such.
      return number.isFinite && number.rounded() != number ? .number(number) : .number(0.5)
    case 4, 5: return .string(string(&random))
    case 6: return .array((0..<Int.random(in: 0..<4, using: &random)).map { _ in value(depth: depth - 1, &random) })
    default:
      var object = JSONObject()
      for _ in 0..<Int.random(in: 0..<4, using: &random) { object[string(&random)] = value(depth: depth - 1, &random) }
      return .object(object)
    }
  }

  private static func string(_ random: inout SplitMix64) -> String {
    var text = ""
    for _ in 0..<Int.random(in: 0..<6, using: &random) {
      let limit: UInt32 = [0x30, 0x80, 0x800, 0x11_0000][Int.random(in: 0..<4, using: &random)]
      if let scalar = Unicode.Scalar(UInt32.random(in: 0..<limit, using: &random)) {
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }
}

@Suite("An object as JSON")
struct ObjectJSONTests {
  @Test("It has its reference, its revision and all keys in the schema's order, and tells its ETag's revision")
  func object() throws {
    var fixture = try Fixture(
      """
      entities:
        Account: {keys: {balance: {type: number}, owner: {toOne: Person}, ownerName: {computed: owner.name}}}
        Person: {keys: {name: {type: string}}}
      """)
    try fixture.create("Person/7", #"{"name":"Ann \"A\""}"#)
    try fixture.create("Account/1", #"{"owner":"Person/7","balance":100}"#)
    try fixture.set("Person/7", "name", #""Ann\n""#)
    let account = try ref("Account/1")
    let record = try #require(fixture.model.state.record(account))
    var bytes: [UInt8] = []
    let revision = fixture.model.state.appendJSON(of: account, record, to: &bytes)
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"@ref":"Account/1","@revision":2,"balance":100,"owner":"Person/7","ownerName":"Ann\n"}"#)
    #expect(revision == 3)
    #expect(revision == fixture.model.state.revision(of: account))
  }

  @Test("An object without keys is its reference and revision")
  func empty() throws {
    var fixture = try Fixture("entities: {A: {}}")
    try fixture.create("A/1")
    let record = try #require(fixture.model.state.record(try ref("A/1")))
    var bytes: [UInt8] = []
    fixture.model.state.appendJSON(of: try ref("A/1"), record, to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == #"{"@ref":"A/1","@revision":1}"#)
  }
}
