import Foundation

/// Lines on standard output, each written at once: the reader of a pipe wants an event when it happens.
enum StandardOutput {
  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Whether it is a terminal that obeys escape sequences.
  static var isScreen: Bool { isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb" }

  /// Whether colours are wanted there: on a screen, unless NO_COLOR is set to anything (https://no-color.org).
  static var isColoured: Bool { isScreen && (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty }

  static func write(_ text: String) {
    FileHandle.standardOutput.write(Data(text.utf8))
  }

  /// Writes text, with a line break at its end where it has none.
  static func text(_ text: String) {
    write(text.hasSuffix("\n") ? text : text + "\n")
  }

  /// Writes JSON that a server has sent, of which a terminal obeys nothing.
  static func json(_ json: String) {
    guard isTerminal else { return text(json) }
    line(TerminalText.escaped(json: json.hasSuffix("\n") ? String(json.dropLast()) : json))
  }

  /// Writes a line with its styles, as far as a terminal is there to show them.
  static func line(_ line: StyledLine) {
    self.line(isScreen ? line.ansi(isColoured: isColoured) : line.text)
  }

  /// Writes a line, without a buffer in between.
  static func line(_ text: String) {
    write(text + "\n")
  }
}
