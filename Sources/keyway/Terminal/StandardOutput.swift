import Foundation
import Glibc

/// Writes lines to standard output, each at once: the reader of a pipe needs an event when it happens.
enum StandardOutput {
  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// True if it is a terminal that interprets escape sequences.
  static var isScreen: Bool { isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb" }

  /// True if colours are used: on a screen, unless NO_COLOR is set to a non-empty value (https://no-color.org).
  static var isColoured: Bool { isScreen && (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty }

  /// Writes text unchanged, including the escape sequences of this program.
  static func draw(_ text: String) {
    FileHandle.standardOutput.write(Data(text.utf8))
  }

  /// Writes text from any file or server. On a terminal, control characters are escaped, so that the terminal does not
  /// interpret them. JSON remains the same JSON.
  static func write(_ text: String) {
    draw(isTerminal ? TerminalText.escaped(text) : text)
  }

  /// Writes text, and a line break unless it ends with one.
  static func text(_ text: String) {
    write(text.hasSuffix("\n") ? text : text + "\n")
  }

  /// Writes a line of clean text, with its styles if the output is a screen.
  static func line(_ line: StyledLine) {
    if isScreen { draw(line.ansi(isColoured: isColoured) + "\n") } else { self.line(line.text) }
  }

  /// Writes a line, without a buffer.
  static func line(_ text: String) {
    write(text + "\n")
  }
}

/// Writes remarks and errors for people to standard error.
enum StandardError {
  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Writes text unchanged, including the escape sequences of this program.
  static func write(_ text: String) { write(Array(text.utf8)) }

  /// Writes bytes. If they cannot be written, they are dropped: the reader may have gone, and `FileHandle` would end
  /// the process.
  static func write(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
      if count < 0, errno != EINTR { return }
      rest = rest.dropFirst(max(0, count))
    }
  }

  /// Writes one or more lines from any file or server. Control characters are escaped, so that a terminal does not
  /// interpret them.
  static func line(_ text: String) { write(TerminalText.escaped(text) + "\n") }
}

/// The size of a terminal in characters.
struct TerminalSize: Hashable, Sendable {
  var columns: Int
  var rows: Int

  /// The size of a terminal that does not report one: that of the VT100.
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
