/// A line of text for a terminal, with its styles beside it: what it says and how wide it is can be tested without one.
struct StyledLine: Hashable, Sendable {
  /// A piece of the line that looks the same throughout.
  struct Span: Hashable, Sendable {
    var text: String
    var style: TextStyle
  }

  var spans: [Span]

  init(_ text: String, _ style: TextStyle = []) {
    spans = [Span(text: text, style: style)]
  }

  var text: String { spans.map(\.text).joined() }

  /// The text with escape sequences for its styles, of which colours are left out where none are wanted. It holds no
  /// other control characters if the text holds none.
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
