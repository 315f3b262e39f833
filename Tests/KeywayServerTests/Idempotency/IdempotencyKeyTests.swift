import KeywayServer
import Testing

@Suite("Idempotency keys")
struct IdempotencyKeyTests {
  @Test(
    "A key is a quoted string of structured fields, or bare; both forms of one text are one key",
    arguments: [
      (#""8e03978e-40d5""#, "8e03978e-40d5"), ("8e03978e-40d5", "8e03978e-40d5"), ("  \"a\"\t", "a"), ("!", "!"),
      (#""a\"b\\c""#, #"a"b\c"#), (#"a\b"#, #"a\b"#), ("a,b;c=d", "a,b;c=d"),
      (String(repeating: "~", count: 255), String(repeating: "~", count: 255)),
    ])
  func wellFormed(_ header: String, _ text: String) throws {
    #expect(try IdempotencyKey(header).text == text)
  }

  @Test(
    "What is empty, too long, not visible ASCII, wrongly quoted, has parameters or came twice is malformed-query",
    arguments: [
      "", "  ", "\"\"", "a b", "\"a b\"", "a, b", "\"a\", \"b\"", "\"a", "a\"", "a\"b", "\"a\"b", "\"a\\", #""a\b""#,
      "\"a\";v=1", "schlüssel", "a\u{7F}", "\"a\tb\"", "\u{FFFD}", String(repeating: "a", count: 256),
    ])
  func malformed(_ header: String) {
    #expect(
      performing: { try IdempotencyKey(header) },
      throws: {
        ($0 as? Problem)?.code == .malformedQuery && ($0 as? Problem)?.detail.contains("Idempotency-Key") == true
      })
  }
}
