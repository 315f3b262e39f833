import Foundation

/// Files of text that a command is given.
enum TextFile {
  /// The whole text. Throws a `CommandFailure` that names the file.
  static func read(_ path: String) throws -> String {
    do {
      return try String(contentsOfFile: path, encoding: .utf8)
    } catch {
      throw CommandFailure("\(path): cannot be read: \(error.localizedDescription)")
    }
  }
}
