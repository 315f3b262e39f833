import Foundation

/// Remarks for people, beside the output proper.
enum StandardError {
  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  static func write(_ text: String) {
    FileHandle.standardError.write(Data(text.utf8))
  }

  static func line(_ text: String) { write(text + "\n") }
}
