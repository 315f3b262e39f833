import ArgumentParser
import KeyValueModel

/// `keyway check`: is this a schema?
struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Checks a schema file, and says line by line what is wrong with it.")

  @Argument(help: "The schema file.")
  var file: String

  func run() throws {
    let schema = try SchemaFile.load(file)
    for warning in schema.warnings { StandardError.line(warning.rendered(as: "warning", file: file)) }
    let keys = schema.entities.reduce(0) { $0 + $1.keys.count }
    StandardOutput.line("\(file): \(schema.entities.count) entities, \(keys) keys")
  }
}
