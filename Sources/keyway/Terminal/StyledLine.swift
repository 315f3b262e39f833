/// A line of text for a terminal, separate from its styles, so that its text and its width can be tested without a
/// terminal.
struct StyledLine: Hashable, Sendable {
  /// A piece of the line in one style.
  struct Span: Hashable, Sendable {
    var text: String
    var style: TextStyle
  }

  var spans: [Span]

  init(_ text: String, _ style: TextStyle = []) {
    spans = [Span(text: text, style: style)]
  }

  var text: String { spans.map(\.text).joined() }

  /// Returns the text with escape sequences for its styles, without colours unless `isColoured`. It has no other
  /// control characters if the text has none.
  func ansi(isColoured: Bool) -> String {
    spans.map { span in
      let style = isColoured ? span.style : span.style.subtracting(.colours)
      return style.isEmpty ? span.text : style.sequence + span.text + TextStyle.reset
    }.joined()
  }

  mutating func append(_ text: String, _ style: TextStyle = []) {
    spans.append(Span(text: text, style: style))
  }
}

/// The style of text on a terminal.
struct TextStyle: OptionSet, Hashable, Sendable {
  let rawValue: UInt8

  static let bold = TextStyle(rawValue: 1)
  static let dim = TextStyle(rawValue: 2)
  static let underlined = TextStyle(rawValue: 4)
  static let inverse = TextStyle(rawValue: 8)
  static let green = TextStyle(rawValue: 16)
  static let yellow = TextStyle(rawValue: 32)
  static let red = TextStyle(rawValue: 64)
  /// The styles that are colours, not another weight or background.
  fileprivate static let colours: TextStyle = [.green, .yellow, .red]

  private static let codes: [(style: TextStyle, code: Int)] = [
    (.bold, 1), (.dim, 2), (.underlined, 4), (.inverse, 7), (.green, 32), (.yellow, 33), (.red, 31),
  ]

  /// The escape sequence that switches the style on (ECMA-48 §8.3.117); empty for plain text.
  fileprivate var sequence: String {
    guard !isEmpty else { return "" }
    let codes = Self.codes.filter { contains($0.style) }.map { String($0.code) }
    return "\u{1B}[" + codes.joined(separator: ";") + "m"
  }

  /// The escape sequence that switches all styles off.
  fileprivate static let reset = "\u{1B}[0m"
}
