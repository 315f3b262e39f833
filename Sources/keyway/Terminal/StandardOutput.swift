import Foundation

/// Lines on standard output, each written at once: the reader of a pipe wants an event when it happens.
enum StandardOutput {
  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Whether it is a terminal that obeys escape sequences.
  static var isScreen: Bool { isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb" }

  static func write(_ text: String) {
    FileHandle.standardOutput.write(Data(text.utf8))
  }

  /// Writes text, with a line break at its end where it has none.
  static func text(_ text: String) {
    write(text.hasSuffix("\n") ? text : text + "\n")
  }

  /// Writes a line, without a buffer in between.
  static func line(_ text: String) {
    write(text + "\n")
  }
}
