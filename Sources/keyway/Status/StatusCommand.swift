import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient

/// `keyway status`: how a server is.
struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Prints how a server is: its condition, its revision, what is open and what it holds in memory.",
    discussion: """
      keyway status
      keyway status --json
      keyway status --server http://other:8080
      """)

  @Flag(help: "The answer of /v1/status as it is.")
  var json = false

  @OptionGroup var options: ClientOptions

  func run() async throws {
    let response = try await options.client().send("GET", "/v1/status", headers: ["Accept": "application/json"])
    guard !json, let status = try? Value(json: response.body).asObject else {
      return StandardOutput.text(response.text)
    }
    for line in StatusText.lines(status, server: try options.address) { StandardOutput.line(line) }
  }
}
