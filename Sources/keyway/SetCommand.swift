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
      """)

  @Argument(help: "The object: Account/1.")
  var object: String

  @Argument(help: "The key path to set.")
  var keyPath: String

  // As an array, because only that way the parser lets a negative number through, which looks like a flag to it.
  @Argument(parsing: .allUnrecognized, help: "A JSON value; what is no JSON is taken as a string.")
  var value: [String]

  @Option(help: "The name that the events caused by this write carry.")
  var writer: String?

  @Option(help: ArgumentHelp("Write only if the value is still the one with this ETag.", valueName: "etag"))
  var ifMatch: String?

  @OptionGroup var options: ClientOptions

  func validate() throws {
    guard object.contains("/") else {
      throw ValidationError("an object is written Entity/id, such as \(object)/1; \(object) has no id")
    }
    guard value.count == 1 else {
      throw ValidationError("one value is set, not \(value.count): \(value.joined(separator: ", "))")
    }
  }

  func run() async throws {
    var headers = ["Accept": "application/json"]
    headers["Keyway-Writer"] = writer
    headers["If-Match"] = ifMatch.map(Self.entityTag)
    let path = ResourcePath.path(object, keyPath: keyPath)
    let response = try await options.client().send("PUT", path, body: Self.body(value.joined()), headers: headers)
    StandardOutput.text(response.text)
  }

  /// The text itself where it is JSON, else the text as a JSON string.
  static func body(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    if (try? Value(json: bytes)) != nil { return bytes }
    return Array(Value.string(text).json.utf8)
  }

  /// An entity tag with its quotation marks, which a shell likes to take away.
  static func entityTag(_ text: String) -> String {
    text == "*" || text.hasSuffix("\"") ? text : "\"\(text)\""
  }
}
