import KeyValueModel
import Testing

@Suite("Fingerprints of schemas")
struct SchemaFingerprintTests {
  private let text = "entities:\n  A:\n    keys:\n      b: { type: string, default: '8' }\n      c: { toOne: A }\n"

  @Test(
    "Comments, quotation marks and layout do not count",
    arguments: [
      "# A\nentities:\n    A:\n        keys:\n            b:\n                type: string\n"
        + "                default: \"8\"\n"
        + "            c: { toOne: A } # c\n\n",
      "{entities: {A: {keys: {b: {type: string, default: '8'}, c: {toOne: A}}}}}",
      "entities:\n  A:\n    keys:\n      b: { type: \"string\", default: '8' }\n      c: { toOne: A }",
    ])
  func same(_ other: String) {
    #expect(Schema.fingerprint(ofYAML: other) == Schema.fingerprint(ofYAML: text))
  }

  @Test("What is declared counts, with its order", arguments: ["'8'", "b:", "toOne", "string", "A:"])
  func different(_ part: String) {
    let other = text.replacing(part, with: part == "'8'" ? "8" : part + "x")
    #expect(Schema.fingerprint(ofYAML: other) != Schema.fingerprint(ofYAML: text))
    let swapped = "entities: {A: {keys: {c: {toOne: A}, b: {type: string, default: '8'}}}}"
    #expect(Schema.fingerprint(ofYAML: swapped) != Schema.fingerprint(ofYAML: text))
  }

  @Test("It is 16 digits, of what is no YAML too")
  func form() {
    for text in [text, "", "{", "a: *b"] {
      #expect(Schema.fingerprint(ofYAML: text).wholeMatch(of: /[0-9a-f]{16}/) != nil)
    }
    #expect(Schema.fingerprint(ofYAML: "{") != Schema.fingerprint(ofYAML: "}"))
  }
}
