import ArgumentParser
import CommandSupport
import KeywayClient

/// `keyway get`: one GET, its JSON on standard output.
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Prints an object, the value of a key path, or any other resource as JSON.",
    discussion: """
      keyway get Account/1
      keyway get Account/1 owner.fullName
      keyway get Department/1 employees.@sum.salary
      keyway get 'Employee?filter=salary > 1000&sort=-salary'
      keyway get /v1/status
      """)

  @Argument(help: "A reference (Account/1), an entity with a query, or a path that begins with a slash.")
  var resource: String

  @Argument(help: "A key path of the object.")
  var keyPath: String?

  @OptionGroup var options: ClientOptions

  func run() async throws {
    let path = ResourcePath.path(resource, keyPath: keyPath)
    let response = try await options.client().send("GET", path, headers: ["Accept": "application/json"])
    StandardOutput.text(response.text)
  }
}
