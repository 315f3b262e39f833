import Foundation
import Glibc

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

/// Remarks and errors for people, beside the output proper.
enum StandardError {
  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Writes text as it is, with the escape sequences of this program.
  static func write(_ text: String) { write(Array(text.utf8)) }

  /// Writes bytes. What cannot be written is lost: the reader may have gone, and `FileHandle` would end the process.
  static func write(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
      if count < 0, errno != EINTR { return }
      rest = rest.dropFirst(max(0, count))
    }
  }

  /// Writes a line, or several, of which a terminal obeys nothing, whatever file or server the text is from.
  static func line(_ text: String) { write(TerminalText.escaped(text) + "\n") }
}

/// How many characters a terminal shows.
struct TerminalSize: Hashable, Sendable {
  var columns: Int
  var rows: Int

  /// What terminals have that do not say: the VT100's.
  private static let usual = TerminalSize(columns: 80, rows: 24)

  /// The size of the terminal on standard output.
  static var current: TerminalSize {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return usual }
    return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
  }
}

extension ContinuousClock.Instant {
  var elapsedSeconds: Double { duration(to: .now) / .seconds(1) }
}
