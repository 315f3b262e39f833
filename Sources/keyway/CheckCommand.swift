import ArgumentParser
import CEmbeddedFiles
import Foundation
import KeyValueModel
import Store

/// Implements `keyway check`: checks a schema.
struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Checks a schema file, and reports each error with its line.")

  @Argument(help: "The schema file.")
  var file: String

  func run() throws {
    let schema = try SchemaFile.load(file)
    for warning in schema.warnings { StandardError.line(warning.rendered(as: "warning", file: file)) }
    let keys = schema.entities.reduce(0) { $0 + $1.keys.count }
    StandardOutput.line("\(file): \(schema.entities.count) entities, \(keys) keys")
  }
}

/// Schema files on disk, and the schema of the example.
enum SchemaFile {
  /// Loads the schema of a file. Throws a `CommandFailure` with one error per line.
  static func load(_ path: String) throws -> Schema { try loadWithText(path).schema }

  /// Loads the schema of a file, with its text. Throws a `CommandFailure` with one error per line.
  static func loadWithText(_ path: String) throws -> (schema: Schema, text: String) {
    let text = try TextFile.read(path, orEmbedded: keyway_example_schema())
    do throws(SchemaError) {
      return (try Schema(yaml: text), text)
    } catch {
      throw CommandFailure(error.rendered(file: path))
    }
  }
}

/// Text files that are arguments of a command.
enum TextFile {
  /// The name of the example, whose files are embedded in the program.
  static let example = "example"

  /// The reason why a file cannot be read, as a clause.
  struct Unreadable: Error {
    let reason: String
  }

  /// Reads the whole text. Throws a `CommandFailure` that names the file.
  static func read(_ path: String) throws -> String {
    do throws(Unreadable) {
      return try text(of: path)
    } catch {
      throw CommandFailure("\(path): \(error.reason)")
    }
  }

  /// Reads the whole text, or the embedded file if the path is the name of the example. Throws a `CommandFailure` that
  /// names the file.
  static func read(_ path: String, orEmbedded file: keyway_embedded_file) throws -> String {
    guard path == example else { return try read(path) }
    return String(decoding: UnsafeBufferPointer(start: file.bytes, count: file.count), as: UTF8.self)
  }

  /// Reads the whole text.
  static func text(of path: String) throws(Unreadable) -> String {
    var isFolder: ObjCBool = false
    if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue {
      throw Unreadable(reason: "is a folder; give the path of a file")
    }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let reason = errno == ENOENT ? "does not exist" : "cannot be read: \(String(cString: strerror(errno)))"
      throw Unreadable(reason: reason)
    }
    let data: Data
    do {
      data = try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).readToEnd() ?? Data()
    } catch {
      throw Unreadable(reason: "cannot be read: \(error.systemReason)")
    }
    guard let text = String(data: data, encoding: .utf8) else {
      throw Unreadable(reason: "is not UTF-8 text; save it in that encoding")
    }
    return text
  }
}
