/// What was written to a terminal, so that the next drawing goes over it: lines in, text with escape sequences out.
///
/// The table stays on the main screen, below what was there before, and is still there afterwards.
struct TableScreen: Sendable {
  private enum Phase {
    case before, drawn, over
  }

  /// Whether marks have colours.
  private let isColoured: Bool
  private var phase = Phase.before
  private var lineCount = 0
  private var size: TerminalSize?

  init(isColoured: Bool) { self.isColoured = isColoured }

  /// The text that puts these lines in the place of the last ones.
  mutating func draw(_ lines: [StyledLine], size: TerminalSize) -> String {
    guard phase != .over else { return "" }
    var text = ""
    if phase == .before {
      // No cursor, and no line goes on in the next one, whatever the terminal thinks of a character's width.
      text += "\u{1B}[?25l\u{1B}[?7l"
    } else if size != self.size {
      // A terminal of another size has moved the lines about: begin on an empty screen.
      text += "\u{1B}[H\u{1B}[2J"
    } else {
      text += "\r"
      if lineCount > 1 { text += "\u{1B}[\(lineCount - 1)A" }
    }
    text += lines.map { $0.ansi(isColoured: isColoured) + "\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J"
    phase = .drawn
    lineCount = lines.count
    self.size = size
    return text
  }

  /// The text that leaves the terminal as it was found, with the table on it. Afterwards nothing is drawn.
  mutating func end() -> String {
    defer { phase = .over }
    return phase == .drawn ? "\r\n\u{1B}[?7h\u{1B}[?25h" : ""
  }
}
