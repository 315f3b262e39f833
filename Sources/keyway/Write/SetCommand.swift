import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient

/// `keyway set`: sets the value for a key path.
struct SetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Sets the value for a key path of an object and prints the value as written.",
    discussion: """
      keyway set Account/1 balance 120
      keyway set Person/7 lastName Byron --writer import-job
      keyway set Account/1 balance -5 --if-match k3f9-12
      keyway set Person/7 lastName '"12"'
      """)

  @Argument(help: "The object: Account/1.")
  var object: String

  @Argument(help: "The key path to set.")
  var keyPath: String

  // As an array, because only that way the parser lets a negative number through, which looks like a flag to it.
  @Argument(parsing: .allUnrecognized, help: ArgumentHelp("The value. \(TypedValue.help)"))
  var value: [String]

  @OptionGroup var condition: ConditionOptions
  @OptionGroup var write: WriteOptions
  @OptionGroup var options: ClientOptions

  func validate() throws {
    _ = try ObjectName.reference(object)
    guard value.count == 1 else {
      throw ValidationError("one value is set, not \(value.count): \(value.joined(separator: ", "))")
    }
  }

  func run() async throws {
    let path = ResourcePath.path(object, keyPath: keyPath)
    let headers = write.headers.merging(condition.headers) { $1 }
    let text = value.joined()
    let body = try Self.body(text)
    let client = try options.client()
    let response = try await TypedValue.explainingTexts({ _ in ("", text) }) {
      try await client.send("PUT", path, body: body, headers: headers)
    }
    StandardOutput.text(response.text)
  }

  /// The text itself where it is JSON, else the text as a JSON string. Throws a `CommandFailure`.
  static func body(_ text: String) throws -> [UInt8] {
    let value = try TypedValue.value(text)
    return Array(value == .string(text) ? value.json.utf8 : text.utf8)
  }
}
