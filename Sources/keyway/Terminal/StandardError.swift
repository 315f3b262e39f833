internal import Foundation

/// Remarks for people, beside the output proper.
enum StandardError {
  /// Whether a person looks at it.
  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Writes text as it stands.
  static func write(_ text: String) {
    FileHandle.standardError.write(Data(text.utf8))
  }

  /// Writes a line.
  static func line(_ text: String) { write(text + "\n") }
}
