internal import ArgumentParser
internal import Foundation
internal import KeyValueModel

/// Schema files on disk.
enum SchemaFile {
  /// The schema of a file. What is wrong is written to standard error, one mistake a line, before the command ends with
  /// status 1.
  static func load(_ path: String) throws -> Schema { try loadWithText(path).schema }

  /// The same with the text of the file.
  static func loadWithText(_ path: String) throws -> (schema: Schema, text: String) {
    let text: String
    do {
      text = try String(contentsOfFile: path, encoding: .utf8)
    } catch {
      throw CommandFailure("\(path): cannot be read: \(error.localizedDescription)")
    }
    do throws(SchemaError) {
      return (try Schema(yaml: text), text)
    } catch {
      throw CommandFailure(error.rendered(file: path))
    }
  }
}

/// Why a command ends with status 1, as the text that it writes to standard error.
struct CommandFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
