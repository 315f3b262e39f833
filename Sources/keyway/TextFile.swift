import CEmbeddedFiles
import Foundation

/// Files of text that a command is given.
enum TextFile {
  /// The name of the example's files, which the program has in itself.
  static let example = "example"

  /// The whole text. Throws a `CommandFailure` that names the file.
  static func read(_ path: String) throws -> String {
    do {
      return try String(contentsOfFile: path, encoding: .utf8)
    } catch {
      throw CommandFailure("\(path): cannot be read: \(error.localizedDescription)")
    }
  }

  /// The same, where the name of the example stands for its file in the program.
  static func read(_ path: String, orEmbedded file: keyway_embedded_file) throws -> String {
    guard path == example else { return try read(path) }
    return String(decoding: UnsafeBufferPointer(start: file.bytes, count: file.count), as: UTF8.self)
  }
}
