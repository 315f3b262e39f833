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

  /// The text with escape sequences for its styles. It holds no other control characters if the text holds none.
  var ansi: String {
    spans.map { $0.style.isEmpty ? $0.text : $0.style.sequence + $0.text + TextStyle.reset }.joined()
  }

  mutating func append(_ text: String, _ style: TextStyle = []) {
    spans.append(Span(text: text, style: style))
  }
}
