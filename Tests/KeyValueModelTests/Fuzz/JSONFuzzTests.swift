import KeyValueModel
import TestKit
import Testing

@Suite("Any JSON")
struct JSONFuzzTests {
  private static let mutator = Mutator(
    [
      #"{"a":1,"b":[true,false,null],"c":{"d":"e"}}"#, #"[0,-0.0,1.5,1e300,-9223372036854775808,0.1]"#,
      #""\u0041\ud83d\ude00\"\\\/\b\f\n\r\t é😀""#, #" { "x" : [ ] , "y" : { } } "#, "12345678901234567890",
      #"{"":"","a\u0000b":[[[[1]]]]}"#, String(repeating: "[", count: 64) + String(repeating: "]", count: 64),
    ],
    pieces: [
      "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "\\ude00", "true", "false", "null", "1", "-", "e+",
      ".",
      "0", "1e400", "\"a\":", "\u{0}", "é", "\u{FEFF}", "//", "NaN", " ", "9007199254740993", "1E-400",
    ])

  @Test("Any bytes are a value that comes back from its text, or have a mistake at one of their places")
  func anyBytes() {
    let failure = Fuzzer("JSON", rounds: 20_000).run(Self.mutator) { bytes in
      do throws(JSONError) {
        let value = try Value(json: bytes)
        let text = value.json
        guard let back = try? Value(json: text) else { return "what was written is no JSON: \(text)" }
        return back.json == text ? nil : "it was written as \(text) and then as \(back.json)"
      } catch {
        return (0...bytes.count).contains(error.offset) ? nil : "the mistake is at \(error.offset) of \(bytes.count)"
      }
    }
    #expect(failure == nil, "\(failure?.description ?? "")")
  }
}
