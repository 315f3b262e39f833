import CEmbeddedFiles
import KeyValueModel

/// Schema files on disk, and that of the example.
enum SchemaFile {
  /// The schema of a file. Throws a `CommandFailure` with one mistake a line.
  static func load(_ path: String) throws -> Schema { try loadWithText(path).schema }

  /// The same with the text of the file.
  static func loadWithText(_ path: String) throws -> (schema: Schema, text: String) {
    let text = try TextFile.read(path, orEmbedded: keyway_example_schema())
    do throws(SchemaError) {
      return (try Schema(yaml: text), text)
    } catch {
      throw CommandFailure(error.rendered(file: path))
    }
  }
}
