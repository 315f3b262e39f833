import Foundation

/// Lines on standard output, each written at once: the reader of a pipe wants an event when it happens.
enum StandardOutput {
  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Whether it is a terminal that obeys escape sequences.
  static var isScreen: Bool { isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb" }

  /// Whether colours are wanted there: on a screen, unless NO_COLOR is set to anything (https://no-color.org).
  static var isColoured: Bool { isScreen && (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty }

  /// Writes text as it is, with the escape sequences of this program.
  static func draw(_ text: String) {
    FileHandle.standardOutput.write(Data(text.utf8))
  }

  /// Writes text, whatever file or server it is from: as it is, but on a terminal, which obeys nothing of it. JSON is
  /// the same JSON there.
  static func write(_ text: String) {
    draw(isTerminal ? TerminalText.escaped(text) : text)
  }

  /// Writes text, with a line break at its end where it has none.
  static func text(_ text: String) {
    write(text.hasSuffix("\n") ? text : text + "\n")
  }

  /// Writes a line of clean text with its styles, as far as a terminal is there to show them.
  static func line(_ line: StyledLine) {
    if isScreen { draw(line.ansi(isColoured: isColoured) + "\n") } else { self.line(line.text) }
  }

  /// Writes a line, without a buffer in between.
  static func line(_ text: String) {
    write(text + "\n")
  }
}
