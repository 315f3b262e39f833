import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient

/// `keyway create`: makes an object.
struct CreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Makes an object, with an id that the server gives or with one of its own, and prints it.",
    discussion: """
      keyway create Person '{"firstName":"Ada","lastName":"Lovelace"}'
      keyway create Person/9 firstName=Ada lastName=Lovelace
      keyway create Note text='back at ten' --lifetime 600

      \(TypedValue.help) A text that looks like JSON has quotation marks of its own: code='"12"'.

      An object that is there already is left as it is, and the command fails.
      """)

  @Argument(help: "An entity (Person), or an object that is not there yet (Person/9).")
  var object: String

  @Argument(help: ArgumentHelp(ObjectBody.help, valueName: "keys"))
  var keys: [String] = []

  @OptionGroup var lifetime: LifetimeOptions
  @OptionGroup var write: WriteOptions
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
      throw CommandFailure("\(object) is there already; keyway patch changes it")
    }
    // Who may not read what was written is only told where it is.
    StandardOutput.text(response.body.isEmpty ? (response.header("Location") ?? object) : response.text)
  }
}
