import ArgumentParser
import Foundation
import KeywayClient

/// What every command that talks to a server takes.
struct ClientOptions: ParsableArguments {
  @Option(help: "The server's address (default: http://127.0.0.1:8080, or what KEYWAY_SERVER says).")
  var server: String?

  @Option(help: ArgumentHelp("How long a response may take.", valueName: "seconds"))
  var timeout = 30.0

  func validate() throws {
    guard timeout > 0, timeout <= 3600 else {
      throw ValidationError("--timeout is more than 0 and at most 3600 seconds")
    }
  }

  /// The address that the flag, the environment or the default gives, in this order.
  var address: String {
    server ?? ProcessInfo.processInfo.environment["KEYWAY_SERVER"] ?? "http://127.0.0.1:8080"
  }

  /// A client of that server with at most `connections` connections.
  func client(connections: Int = 6) throws -> Client {
    try Client(server: address, timeoutSeconds: timeout, connections: connections)
  }
}
