import Glibc

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
