import ArgumentParser
import CommandSupport
import KeywayClient

/// `keyway delete`: deletes an object.
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
  @OptionGroup var write: WriteOptions
  @OptionGroup var options: ClientOptions

  func validate() throws { _ = try ObjectName.reference(object) }

  func run() async throws {
    let headers = write.headers.merging(condition.headers) { $1 }
    _ = try await options.client().send("DELETE", ResourcePath.path(object), headers: headers)
  }
}
