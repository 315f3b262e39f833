import Testing

@Suite("The prose of a source and of a page")
struct ProseTests {
  private static let source: [Substring] = [
    "/// What a row has.",
    "struct Row {",
    "  /// The name.",
    "  ///",
    "  /// Whether it is longer does not matter: a name is no number, and it is no",
    "  /// longer a text. There is no other.",
    "  let name = \"a name is no number\"",
    "  // Who reads this is no reader.",
    "  let other = \"there is no other\"",
    "  /// The value that nobody worked",
    "  /// out, and what became of it.",
    "  /// Those are the last words.",
    "  let value = \"it is no longer kept\"",
    "}",
  ]

  private func text(_ findings: [Prose.Finding]) -> [String] { findings.map { "\($0.index) \($0.words)" } }

  @Test("The words that open a comment or one of its paragraphs are found, in no other line")
  func openings() {
    let prose = Prose(documentationOf: Self.source)
    #expect(text(prose.openings(with: ["What", "Whether", "Who", "Those"])) == ["0 What", "4 Whether"])
    #expect(text(prose.openings(with: ["The"])) == ["2 The", "9 The"])
  }

  @Test("Terms of one or more words are found once each, also over two lines, and not within other words")
  func terms() {
    let prose = Prose(documentationOf: Self.source)
    #expect(
      text(prose.terms(["nobody", "worked out", "what became of", "words", "reads"])) == [
        "9 nobody", "10 worked out", "10 what became of", "11 words",
      ])
    #expect(text(prose.terms(["body", "became", "work"])) == ["10 became"])
  }

  @Test("Denials are found in comments, in code and in pages; comparisons are left out, also over two lines")
  func denials() {
    let prose = Prose(documentationOf: Self.source)
    #expect(text(prose.denials(allowingThere: true)) == ["4 is no number"])
    #expect(text(prose.denials(allowingThere: false)) == ["4 is no number", "5 is no other"])
    #expect(text(Prose(codeOf: Self.source).denials(allowingThere: false)) == ["6 is no number", "8 is no other"])
    let page: [Substring] = ["There", "is no store. These are", "no stores."]
    #expect(text(Prose(page: page).denials(allowingThere: true)) == ["2 are no stores"])
  }
}
