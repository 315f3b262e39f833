import KeyValueModel
import TestKit
import Testing

@Suite("Reading JSON")
struct JSONParsingTests {
  @Test(
    "Texts that RFC 8259 allows are read",
    arguments: [
      ("null", Value.null), (" \t\r\n true ", .bool(true)), ("false", .bool(false)),
      ("0", .integer(0)), ("-1", .integer(-1)), ("10", .integer(10)),
      ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
      ("9007199254740993", .integer(9_007_199_254_740_993)),
      ("9223372036854775808", .number(9_223_372_036_854_775_808)),
      ("-9223372036854775809", .number(-9_223_372_036_854_775_808)),
      ("1.5", .number(1.5)), ("1e2", .number(100)), ("1E+2", .number(100)), ("25e-1", .number(2.5)),
      ("0.1", .number(0.1)), ("0e0", .number(0)), ("5e-324", .number(.leastNonzeroMagnitude)),
      ("1.7976931348623157e308", .number(.greatestFiniteMagnitude)),
      ("\"\"", .string("")), (#""a\"\\\/\b\f\n\r\tz""#, .string("a\"\\/\u{8}\u{c}\n\r\tz")),
      (#""\u0041\u00e9\u20AC""#, .string("Aé€")), (#""\uD83D\ude00""#, .string("😀")),
      ("\"😀\u{7f}\"", .string("😀\u{7f}")),
      (#""\u0000""#, .string("\u{0}")), (#""\uFFFF\uDBFF\uDFFF""#, .string("\u{FFFF}\u{10FFFF}")),
      ("[]", .array([])), ("[1 , [ ] ,null]", .array([.integer(1), .array([]), .null])),
      ("{}", .object([:])), (#"{"":1,"a" : {"a":2}}"#, .object(["": .integer(1), "a": .object(["a": .integer(2)])])),
    ])
  func valid(text: String, value: Value) throws {
    #expect(try json(text) == value)
  }

  @Test(
    "Texts that RFC 8259 does not allow are refused, with the place of the mistake",
    arguments: [
      ("", 0), ("  ", 2), ("nul", 0), ("nulll", 4), ("True", 0), ("1 2", 2), ("[1", 2), ("[1,]", 3), ("[,1]", 1),
      ("{", 1), ("{\"a\"}", 4), ("{\"a\":}", 5), ("{\"a\":1,}", 7), ("{a:1}", 1), ("{1:1}", 1), ("]", 0), ("}", 0),
      ("01", 2), ("-01", 3), ("-", 1), ("+1", 0), (".5", 0), ("1.", 2), ("1.e1", 2), ("1e", 2), ("1e+", 3), ("0x10", 1),
      ("NaN", 0), ("Infinity", 0), ("-Infinity", 1), ("1e309", 5), ("-1e400", 6), ("'a'", 0), ("\"a", 2),
      ("\"a\nb\"", 2), ("\"\\n\tb\"", 3), ("\"\u{0}\"", 1), ("\"\\x\"", 3), ("\"\\u12\"", 3), ("\"\\u12g4\"", 5),
      ("\"\\", 2), ("\"\\u+123\"", 3), ("\u{FEFF}1", 0), ("[1}", 2), ("// c\n1", 0), ("{\"a\":1 \"b\":2}", 7),
      ("\"\\ud800\"", 7), ("\"\\udc00\"", 7), ("\"\\ud800\\u0041\"", 13), ("\"\\ud800x\"", 7), ("\"\\ud800\\n\"", 7),
      ("[\"a\"", 4), ("1\u{0}", 1), ("\u{a0}1", 0),
    ])
  func invalid(text: String, offset: Int) throws {
    let error = try #require(throws: JSONError.self) { try json(text) }
    #expect(error.offset == offset, "\(error)")
    // These two are JSON, but no value can hold them.
    #expect(error.isOutOfRange == ["1e309", "-1e400"].contains(text))
  }

  @Test(
    "Bytes that are not UTF-8 are refused",
    arguments: [
      [0x22, 0xFF, 0x22], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0x22, 0xE2, 0x82, 0x22],
      [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], [0x22, 0x5C, 0x6E, 0x80, 0x22], [0x80],
    ] as [[UInt8]])
  func notUTF8(bytes: [UInt8]) {
    #expect(throws: JSONError.self) { try Value(json: bytes) }
  }

  @Test("An object that names a member twice is refused, however the name is written")
  func duplicates() throws {
    for text in [#"{"a":1,"a":1}"#, #"{"a":1,"\u0061":2}"#, #"[{"x":{"b":1,"c":2,"b":3}}]"#] {
      let error = try #require(throws: JSONError.self) { try json(text) }
      #expect(error.reason.contains("twice"))
    }
  }

  @Test("Arrays and objects nest 64 levels deep and no deeper")
  func depth() throws {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
      func nest(_ levels: Int) -> String {
        String(repeating: open, count: levels) + "1" + String(repeating: close, count: levels)
      }
      #expect(try json(nest(64)).json == nest(64))
      #expect(throws: JSONError.self) { try json(nest(65)) }
      #expect(throws: JSONError.self) { try json(nest(100_000)) }
    }
    #expect(throws: JSONError.self) { try json(String(repeating: "[", count: 100_000)) }
    // Siblings do not add up.
    #expect(throws: Never.self) { try json("[" + String(repeating: "[],", count: 200) + "[]]") }
  }

  @Test("Minus zero keeps its sign and its point, and is another number than zero, in the same place of a sort")
  func minusZero() throws {
    for text in ["-0", "-0.0", "-0e5"] {
      guard case .number(let number) = try json(text) else {
        Issue.record("\(text) is no double")
        continue
      }
      #expect(number.sign == .minus)
      #expect(try json(text).json == "-0.0")
      #expect(try json(text) == .number(-0.0) && json(text) != .number(0))
      #expect(try ValueOrder.plain.ordering(of: json(text), to: .number(0)) == .same)
    }
  }

  @Test("Strings are equal byte for byte, also as names of members")
  func canonicalEquivalence() throws {
    let composed = "\u{E9}"
    let decomposed = "e\u{301}"
    #expect(Value.string(composed) != .string(decomposed))
    #expect(Value.object([composed: .null]) != .object([decomposed: .null]))
    #expect(Value.object(["a": .integer(1), "b": .null]) == .object(["b": .null, "a": .integer(1)]))
  }

  @Test("Names that Unicode holds for equal are names of two members")
  func equivalentNames() throws {
    let (composed, decomposed) = ("\u{E9}", "e\u{301}")
    let text = "{\"\(composed)\":1,\"\(decomposed)\":2,\"K\":3,\"\u{212A}\":4}"
    guard case .object(var object) = try json(text) else { throw NotAnObject() }
    #expect(object.members.count == 4)
    #expect(Value.object(object).json == text)
    #expect(object[decomposed] == .integer(2))
    #expect(object["\u{212A}"] == .integer(4))
    object[composed] = nil
    #expect(object.members.map(\.value) == [.integer(2), .integer(3), .integer(4)])
    #expect(throws: JSONError.self) { try json("{\"\(composed)\":1,\"\(composed)\":1}") }
  }

  @Test(
    "A number is a double where its text says what the double stands for, else the exact integer or a rounded number",
    arguments: [
      ("1.0", Value.number(1)), ("1e3", .number(1000)), ("-2.50e1", .number(-25)), ("0e5", .number(0)),
      ("9007199254740992.0", .number(0x1p53)), ("9007199254740993.0", .integer(9_007_199_254_740_993)),
      ("900719925474099300e-2", .integer(9_007_199_254_740_993)), ("9.223372036854775e+18", .number(0x1p63 - 1024)),
      ("9.223372036854775807e18", .integer(.max)), ("-9.223372036854775808e18", .integer(.min)),
      ("-9223372036854775808", .integer(.min)), ("-9223372036854775809", .rounded(-0x1p63)),
      ("9223372036854775808", .rounded(0x1p63)), ("1e19", .number(1e19)), ("1.00000000000000000001", .rounded(1)),
      ("4503599627370497.5", .rounded(0x1p52 + 2)), ("1e-400", .rounded(0)), ("0.1e-5", .number(1e-6)),
      ("0.00000000000000000000", .number(0)), ("0e99999999999999999999", .number(0)), ("1.5", .number(1.5)),
    ])
  func exactNumbers(text: String, value: Value) throws {
    // A rounded number is equal to its double.
    #expect("\(try json(text))" == "\(value)")
  }

  @Test("Decimals of any length are read as the double next to them")
  func decimals() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<20_000 {
      let digits = (0..<Int.random(in: 1...18, using: &random)).map { _ in Int.random(in: 0...9, using: &random) }
      let fraction = digits.map(String.init).joined()
      let whole = Int.random(in: 0...(1 << Int.random(in: 0...40, using: &random)), using: &random)
      let text = "\(Bool.random(using: &random) ? "-" : "")\(whole).\(fraction)"
      guard let double = Double(text) else { continue }
      switch try Value(json: text) {
      case .number(let read), .rounded(let read):
        #expect(read.bitPattern == double.bitPattern, "\(text), seed \(seed)")
      case let read: #expect(read == Int64(exactly: double).map(Value.integer), "\(text), seed \(seed)")
      }
    }
  }
}
