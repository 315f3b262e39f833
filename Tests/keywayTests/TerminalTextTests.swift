import KeyValueModel
import TestKit
import Testing

@testable import keyway

@Suite("Text for a terminal") struct TerminalTextTests {
  @Test(
    "what commands a terminal becomes visible",
    arguments: [
      ("Ab Ż", "Ab Ż"), ("\u{1B}[2J", "␛[2J"), ("a\r\nb\tc\0", "a␍␊b␉c␀"), ("\u{7F}\u{9B}31m", "␡\u{FFFD}31m"),
      ("\u{202E}abc\u{2066}\u{2028}", "\u{FFFD}abc\u{FFFD}\u{FFFD}"), ("a\u{200D}b", "ab"),
      ("e\u{301}", "e\u{301}"), ("\u{301}", "\u{25CC}\u{301}"), ("\u{1F468}\u{200D}\u{1F469}", "\u{1F468}\u{1F469}"),
    ])
  func clean(text: String, expected: String) {
    #expect(TerminalText.clean(text) == expected)
  }

  @Test(
    "a text takes as many columns as its characters",
    arguments: [
      ("", 0), ("abc", 3), ("Żółć", 4), ("e\u{301}", 1), ("\u{301}", 0), ("東京", 4), ("한글", 4), ("👍🏽", 2), ("🇩🇪", 2),
      ("☎️", 2), ("…", 1), ("Ｔ", 2),
    ])
  func width(text: String, expected: Int) {
    #expect(TerminalText.width(text) == expected)
  }

  @Test(
    "a text is padded or cut to the columns that there are",
    arguments: [
      ("abc", 5, false, "abc  "), ("abc", 5, true, "  abc"), ("abc", 3, false, "abc"), ("abcd", 3, false, "ab…"),
      ("abc", 1, false, "…"), ("abc", 0, false, ""), ("東京", 3, false, "東…"), ("東京", 2, false, "… "),
      ("12345", 4, true, "123…"), ("", 2, true, "  "),
    ])
  func fitted(text: String, columns: Int, isRightAligned: Bool, expected: String) {
    #expect(TerminalText.fitted(text, columns: columns, isRightAligned: isRightAligned) == expected)
  }

  @Test("JSON is the same JSON after its characters are escaped for a terminal")
  func json() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<500 {
      let value = Value.string(RandomText.text(using: &random))
      let escaped = TerminalText.escaped(value.json)
      #expect(!RandomText.commands(escaped), "seed \(seed)")
      #expect(try Value(json: escaped) == value, "seed \(seed): \(escaped)")
    }
    let sequences = "a\tb\nc\r\u{1B}]0;x\u{07}\u{7F}\u{202E}"
    #expect(TerminalText.escaped(sequences) == #"a\#tb\#nc\u000d\u001b]0;x\u0007\u007f\u202e"#)
    #expect(TerminalText.escaped("\"\u{9B}\u{E0041}\"") == #""\u009b\udb40\udc41""#)
  }
}

/// Texts with all kinds of characters that may disturb a terminal.
enum RandomText {
  /// Returns up to a dozen scalars: letters, combining marks, wide ones, and controls of each kind.
  static func text(using random: inout SplitMix64) -> String {
    let ranges: [ClosedRange<UInt32>] = [
      0x00...0x1F, 0x20...0x7E, 0x7F...0x9F, 0xC0...0x17F, 0x300...0x36F, 0x600...0x605, 0x200B...0x200F,
      0x2028...0x202E, 0x2066...0x2069, 0x3041...0x9FFF, 0xFE00...0xFE0F, 0x1F300...0x1F6FF, 0x1F1E6...0x1F1FF,
      0xE0000...0xE007F,
    ]
    var text = String.UnicodeScalarView()
    for _ in 0..<Int.random(in: 0...12, using: &random) {
      let range = ranges[Int.random(in: 0..<ranges.count, using: &random)]
      if let scalar = Unicode.Scalar(UInt32.random(in: range, using: &random)) { text.append(scalar) }
    }
    return String(text)
  }

  /// Returns true if a text contains a character that controls a terminal.
  static func commands(_ text: String) -> Bool {
    text.unicodeScalars.contains { scalar in
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator: true
      default: false
      }
    }
  }
}
