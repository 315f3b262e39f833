import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient
import Testing

@testable import keyway

@Suite("Text on a command line, and messages of commands") struct CommandTextTests {
  @Test("A token may end its line", arguments: ["a.b-c_d~+/==", "abc\n", "abc\r\n", "abc\n\n"])
  func token(_ text: String) throws {
    #expect(try ClientOptions.token(text, from: "--token") == text.filter { !$0.isNewline })
  }

  @Test(
    "A text that is not one token is refused, and not shown",
    arguments: [
      ("", "is empty; it must be a token"), ("\n", "is empty; it must be a token"),
      ("s3cret s3cret", "has 2 words; a token is one word"), ("s3cret\ns3cret\n", "has 2 words; a token is one word"),
      (" s3cret", "is not a token: "), ("s3cret\t", "is not a token: "), ("s3=cret", "is not a token: "),
      ("s3cret\u{FFFD}", "is not a token: "), ("Żs3cret", "is not a token: "), ("\"s3cret\"", "is not a token: "),
    ])
  func noToken(_ text: String, _ message: String) {
    #expect {
      try ClientOptions.token(text, from: "KEYWAY_TOKEN")
    } throws: { error in
      let said = (error as? ValidationError)?.message ?? ""
      return said.hasPrefix("KEYWAY_TOKEN \(message)") && !said.contains("s3")
    }
  }

  @Test(
    "A value is JSON, or a text that does not look like it",
    arguments: [
      ("1", .integer(1)), ("true", .bool(true)), ("[1]", .array([.integer(1)])), ("\"1\"", .string("1")),
      ("1x", .string("1x")), ("007", .string("007")), ("a [b]", .string("a [b]")), ("", .string("")),
      ("NaN", .string("NaN")),
    ] as [(String, Value)])
  func value(_ text: String, _ expected: Value) throws {
    #expect(try TypedValue.value(text) == expected)
  }

  @Test(
    "A text that looks like JSON and is not is refused, with its form as a JSON text",
    arguments: [
      ("[manager]", #"roles='"[manager]"'"#), ("{a:1}", #"roles='"{a:1}"'"#), (" [1", #"roles='" [1"'"#),
      ("\"it's", #"roles='"\"it'\''s"'"#), ("1e999", #"roles='"1e999"'"#),
    ])
  func looksLikeJSON(_ text: String, _ written: String) {
    #expect {
      try TypedValue.value(text, after: "roles=")
    } throws: { error in
      "\(error)".hasPrefix("roles=\(text) looks like JSON but is not: ") && "\(error)".hasSuffix("as \(written)")
    }
  }

  @Test("A refusal of a number for a text says how the text is typed, and any other stays as it is")
  func texts() async throws {
    func refusal(_ detail: String, _ words: [String]) async -> String {
      let body = #"{"type":"/v1/problems/invalid-value","detail":"\#(detail)","keyPath":"first"}"#
      let problem = Problem(ClientResponse(status: 422, body: Array(body.utf8)))
      do {
        try await TypedValue.explainingTexts({ ObjectBody.typed($0, in: words) }) { throw problem }
        return ""
      } catch { return "\(error)" }
    }
    let plain = "422 invalid-value: 'first' must be a string, not a number (first)"
    let hint = #"first=1 is JSON; write the text as first='"1"'"#
    let detail = "'first' must be a string, not a number"
    #expect(await refusal(detail, ["last=A", "first=1"]) == "\(plain)\nhint: \(hint)")
    #expect(await refusal(detail, [#"{"first":1}"#]) == plain)
    #expect(await refusal("too long", ["first=1"]) == "422 invalid-value: too long (first)")
  }

  @Test("A list may have no objects at all, and no fewer")
  func limit() throws {
    #expect(try GetCommand.parse(["Note", "--limit", "0"]).path == "/v1/objects/Note?limit=0")
    #expect(throws: (any Error).self) { try GetCommand.parse(["Note", "--limit=-1"]) }
  }

  @Test("An import that stops counts its rows", arguments: [(0, "0 rows"), (1, "1 row"), (2, "2 rows")])
  func stopped(_ rows: Int, _ said: String) {
    let failure = ImportFailure(file: "a.csv", cause: ImportError(line: 3, reason: "no"), rows: rows)
    #expect(failure.description == "a.csv:3: no\nstopped; \(said) had been imported")
  }

  @Test("An argument that is not UTF-8 is named, with its first byte that is not")
  func encoding() throws {
    let word = Array("Ż€😀".utf8)
    try Keyway.check(arguments: [[], word, Array("\u{FFFD}".utf8)])
    for (bytes, message) in [
      ([0x61, 0xFF], "argument 2 is not UTF-8: its byte 2 is 0xFF"),
      ([0xC3], "argument 2 is not UTF-8: its byte 1 is 0xC3"),
      ([0x61, 0xED, 0xA0, 0x80], "argument 2 is not UTF-8: its byte 2 is 0xED"),
      ([0xEF, 0xBF], "argument 2 is not UTF-8: its byte 1 is 0xEF"),
    ] as [([UInt8], String)] {
      #expect {
        try Keyway.check(arguments: [word, bytes])
      } throws: { error in
        (error as? ValidationError)?.message == message
      }
    }
  }

  @Test("In help, text is broken at the width of the terminal, and what a shell takes is not")
  func help() {
    let help = """
      OVERVIEW: \(String(repeating: "over ", count: 12))

      keyway watch Airport --filter "latitude > 60.0" --section state
      cd todo && keyway serve --with many --flags that --make it --long

      keyway serve does
      by itself what \(String(repeating: "many ", count: 5))words say.

      USAGE: keyway watch [--one <one>] [--two <two>] [--three <three>]

      OPTIONS:
        --one <one>             \(String(repeating: "word ", count: 8))
        -h, --help              Show help.

      """
    let lines = HelpText.wrapped(help, columns: 50).split(separator: "\n", omittingEmptySubsequences: false)
    #expect(
      lines == [
        "OVERVIEW: over over over over over over over over", "over over over over", "",
        "keyway watch Airport --filter \"latitude > 60.0\" --section state",
        "cd todo && keyway serve --with many --flags that --make it --long", "",
        "keyway serve does by itself what many many many", "many many words say.", "",
        "USAGE: keyway watch [--one <one>] [--two <two>] [--three <three>]", "", "OPTIONS:",
        "  --one <one>             word word word word word", "                          word word word",
        "  -h, --help              Show help.", "",
      ])
    #expect(HelpText.wrapped(help, columns: 1) == HelpText.wrapped(help, columns: HelpText.fewestColumns))
  }
}

@Suite("Keys for create and patch") struct ObjectBodyTests {
  @Test(
    "JSON is taken as it is, and key=value is a key each",
    arguments: [
      ([], "{}"), ([#"{"a":1}"#], #"{"a":1}"#), (["[1]"], "[1]"), (["a=1", "b=x y"], #"{"a":1,"b":"x y"}"#),
      (["a=", "b=null", #"c="3""#], #"{"a":"","b":null,"c":"3"}"#), (["a=b=c"], #"{"a":"b=c"}"#),
      (["a=-5", "b=Person/7"], #"{"a":-5,"b":"Person/7"}"#), (["-"], #"{"from":"input"}"#),
    ])
  func body(_ words: [String], _ expected: String) throws {
    #expect(try ObjectBody.json(words) { Array(#"{"from":"input"}"#.utf8) }.json == expected)
  }

  @Test(
    "anything else is a mistake", arguments: [["{"], ["a"], ["=1"], ["a=1", "a=2"], ["{}", "b=1"], ["a=1", "-"]])
  func mistake(_ words: [String]) {
    #expect(throws: CommandFailure.self) { try ObjectBody.json(words) { [] } }
  }
}
