import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient

/// `keyway patch`: changes some keys of an object.
struct PatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "patch",
    abstract: "Changes some keys of an object at once, and prints it as it is then.",
    discussion: """
      keyway patch Person/7 '{"lastName":"Byron","email":null}'
      keyway patch Person/7 lastName=Byron email=null --if-match k3f9-12
      keyway patch Note/1 '[{"op":"add","path":"/tags/0","value":"new"}]'

      A JSON object is a merge patch (RFC 7396), and so is key=value; an array is a JSON Patch (RFC 6902).
      \(TypedValue.help) A text that looks like JSON has quotation marks of its own: code='"12"'.
      """)

  @Argument(help: "The object: Person/7.")
  var object: String

  @Argument(help: ArgumentHelp(ObjectBody.help + " An array is a JSON Patch.", valueName: "patch"))
  var patch: [String]

  @OptionGroup var condition: ConditionOptions
  @OptionGroup var lifetime: LifetimeOptions
  @OptionGroup var write: WriteOptions
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
