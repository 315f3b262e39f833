import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient

/// Implements `keyway set`: sets the value for a key path.
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

  // An array, because the parser accepts a negative number, which looks like a flag, only in one.
  @Argument(parsing: .allUnrecognized, help: ArgumentHelp("The value. \(TypedValue.help)"))
  var value: [String]

  @OptionGroup var condition: ConditionOptions
  @OptionGroup private var write: WriteOptions
  @OptionGroup var options: ClientOptions

  func validate() throws {
    _ = try ObjectName.reference(object)
    guard value.count == 1 else {
      throw ValidationError("set takes one value, not \(value.count): \(value.joined(separator: ", "))")
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

  /// Returns the text itself if it is JSON, else the text as a JSON string. Throws a `CommandFailure`.
  static func body(_ text: String) throws -> [UInt8] {
    let value = try TypedValue.value(text)
    return Array(value == .string(text) ? value.json.utf8 : text.utf8)
  }
}

/// Implements `keyway create`: creates an object.
struct CreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Creates an object, with an id from the server or a given one, and prints it.",
    discussion: """
      keyway create Person '{"firstName":"Ada","lastName":"Lovelace"}'
      keyway create Person/9 firstName=Ada lastName=Lovelace
      keyway create Note text='back at ten' --lifetime 600

      \(TypedValue.help) A text that looks like JSON needs quotation marks of its own: code='"12"'.

      If the object already exists, it is not changed, and the command fails.
      """)

  @Argument(help: "An entity (Person), or an object that does not exist yet (Person/9).")
  var object: String

  @Argument(help: ArgumentHelp(ObjectBody.help, valueName: "keys"))
  var keys: [String] = []

  @OptionGroup private var lifetime: LifetimeOptions
  @OptionGroup private var write: WriteOptions
  @OptionGroup var options: ClientOptions

  func validate() throws {
    if object.contains("/") { _ = try ObjectName.reference(object) }
  }

  func run() async throws {
    let body = Array(try ObjectBody.json(keys).json.utf8)
    let client = try options.client()
    var headers = write.headers.merging(lifetime.headers) { $1 }
    let path = ResourcePath.path(object)
    let isNamed = object.contains("/")
    if isNamed { headers["If-None-Match"] = "*" }
    let response: ClientResponse
    do {
      response = try await TypedValue.explainingTexts({ ObjectBody.typed($0, in: keys) }) {
        try await client.send(isNamed ? "PUT" : "POST", path, body: body, headers: headers)
      }
    } catch let problem as Problem where isNamed && problem.status == 412 {
      throw CommandFailure("\(object) already exists; keyway patch changes it")
    }
    // A client that may not read the object gets its location only.
    StandardOutput.text(response.body.isEmpty ? (response.header("Location") ?? object) : response.text)
  }
}

/// Implements `keyway patch`: changes some keys of an object.
struct PatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "patch",
    abstract: "Changes some keys of an object at once, and prints the result.",
    discussion: """
      keyway patch Person/7 '{"lastName":"Byron","email":null}'
      keyway patch Person/7 lastName=Byron email=null --if-match k3f9-12
      keyway patch Note/1 '[{"op":"add","path":"/tags/0","value":"new"}]'

      A JSON object is a merge patch (RFC 7396), and so is key=value; an array is a JSON Patch (RFC 6902).
      \(TypedValue.help) A text that looks like JSON needs quotation marks of its own: code='"12"'.
      """)

  @Argument(help: "The object: Person/7.")
  var object: String

  @Argument(help: ArgumentHelp(ObjectBody.help + " An array is a JSON Patch.", valueName: "patch"))
  var patch: [String]

  @OptionGroup var condition: ConditionOptions
  @OptionGroup private var lifetime: LifetimeOptions
  @OptionGroup private var write: WriteOptions
  @OptionGroup var options: ClientOptions

  func validate() throws { _ = try ObjectName.reference(object) }

  func run() async throws {
    let body = try ObjectBody.json(patch)
    var headers = write.headers.merging(condition.headers) { $1 }.merging(lifetime.headers) { $1 }
    headers["Content-Type"] =
      if case .array = body { "application/json-patch+json" } else { "application/merge-patch+json" }
    let client = try options.client()
    let response = try await TypedValue.explainingTexts({ ObjectBody.typed($0, in: patch) }) { [headers] in
      try await client.send("PATCH", ResourcePath.path(object), body: Array(body.json.utf8), headers: headers)
    }
    StandardOutput.text(response.text)
  }
}

/// Implements `keyway delete`: deletes an object.
struct DeleteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete",
    abstract: "Deletes an object, and what its schema's delete rules delete with it.",
    discussion: """
      keyway delete Account/1
      keyway delete Account/1 --if-match k3f9-12
      """)

  @Argument(help: "The object: Account/1.")
  var object: String

  @OptionGroup var condition: ConditionOptions
  @OptionGroup private var write: WriteOptions
  @OptionGroup var options: ClientOptions

  func validate() throws { _ = try ObjectName.reference(object) }

  func run() async throws {
    let headers = write.headers.merging(condition.headers) { $1 }
    _ = try await options.client().send("DELETE", ResourcePath.path(object), headers: headers)
  }
}

/// Options of every command that writes.
private struct WriteOptions: ParsableArguments {
  @Option(help: "The name that the events caused by this write carry.")
  var writer: String?

  /// The header fields for the option.
  var headers: [String: String] {
    var headers = ["Accept": "application/json"]
    headers["Keyway-Writer"] = writer
    return headers
  }
}

/// The condition on which a command writes to an existing object.
struct ConditionOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Write only if the object or value still has this ETag.", valueName: "etag"))
  var ifMatch: String?

  /// The header fields for the option.
  var headers: [String: String] { ifMatch.map { ["If-Match": Self.entityTag($0)] } ?? [:] }

  /// Returns an entity tag with its quotation marks, which a shell removes.
  static func entityTag(_ text: String) -> String {
    text == "*" || text.hasSuffix("\"") ? text : "\"\(text)\""
  }
}

/// The lifetime of an object that a command writes.
private struct LifetimeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Delete the object this many seconds after the last such write, or with a stream; none keeps it.",
      valueName: "seconds, stream=NAME or none"))
  var lifetime: String?

  /// The header fields for the option.
  var headers: [String: String] { lifetime.map { ["Keyway-Lifetime": $0] } ?? [:] }
}

/// The name of an object in an argument.
private enum ObjectName {
  /// Returns the reference of `text`. Throws a `ValidationError` that explains what is missing.
  static func reference(_ text: String) throws -> Reference {
    if let reference = Reference(text) { return reference }
    guard text.contains("/") else {
      throw ValidationError("an object must be Entity/id, such as \(text)/1; \(text) has no id")
    }
    throw ValidationError(
      "\(text) is not an object: it must be Entity/id, with an id of ASCII letters, digits and . _ ~ -")
  }
}
