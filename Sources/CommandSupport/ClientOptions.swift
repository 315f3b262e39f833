package import ArgumentParser
import Foundation
package import KeywayClient

/// The options of every command that talks to a server.
package struct ClientOptions: ParsableArguments {
  /// The value of `--server`.
  @Option(
    help: """
      The server's address (default: KEYWAY_SERVER, or KEYWAY_HOST and KEYWAY_PORT; without them host and port in \
      keyway.yaml in the current folder, or else http://127.0.0.1:8080).
      """)
  package var server: String?

  /// The value of `--timeout`, in seconds.
  @Option(help: ArgumentHelp("The maximum time for a response.", valueName: "seconds"))
  package var timeout = 30.0

  /// The value of `--token`.
  @Option(help: "The token that identifies the user (default: KEYWAY_TOKEN).")
  package var token: String?

  /// The value of `--token-file`.
  @Option(help: ArgumentHelp("A file with the token.", valueName: "path"))
  package var tokenFile: String?

  /// Creates the options before the arguments are parsed.
  package init() {}

  /// Throws if the timeout is out of its bounds, or if two options give a token.
  package func validate() throws {
    guard timeout > 0, timeout <= 3600 else {
      throw ValidationError("--timeout must be more than 0 and at most 3600 seconds")
    }
    guard token == nil || tokenFile == nil else {
      throw ValidationError("--token and --token-file cannot be used together")
    }
  }

  /// The address from the option, the environment, the configuration file of the folder or the default, in this order.
  package var address: String {
    get throws(ValidationError) {
      if let server { return server }
      let environment = ProcessInfo.processInfo.environment
      return try ServerAddress.url(in: environment, file: ServerFile.inCurrentFolder)
    }
  }

  /// Returns the token from the options or the environment; nil if there is none. Throws if its file cannot be read, or
  /// if the text is not a single token: a request with it would be sent without any.
  package func bearerToken() throws -> String? {
    if let tokenFile {
      guard let data = FileManager.default.contents(atPath: tokenFile) else {
        throw ValidationError("--token-file: '\(tokenFile)' cannot be read")
      }
      return try Self.token(String(decoding: data, as: UTF8.self), from: "--token-file: '\(tokenFile)'")
    }
    if let token { return try Self.token(token, from: "--token") }
    guard let text = ProcessInfo.processInfo.environment["KEYWAY_TOKEN"], !text.isEmpty else { return nil }
    return try Self.token(text, from: "KEYWAY_TOKEN")
  }

  /// Returns the token of a text, which may end its line (RFC 6750 §2.1). Throws a `ValidationError` for anything else,
  /// without the text, of which a part may be secret.
  package static func token(_ text: String, from source: String) throws(ValidationError) -> String {
    var token = text[...]
    while token.last == "\n" || token.last == "\r\n" { token.removeLast() }
    if token.wholeMatch(of: /[A-Za-z0-9\-._~+\/]+=*/) != nil { return String(token) }
    if token.isEmpty { throw ValidationError("\(source) is empty; it must be a token") }
    let count = token.split(whereSeparator: \.isWhitespace).count
    throw ValidationError(
      count > 1
        ? "\(source) has \(count) words; a token is one word"
        : "\(source) is not a token: use ASCII letters, digits and - . _ ~ + /, and = only at the end")
  }

  /// Creates a client of that server with at most `connections` connections.
  package func client(connections: Int = 6) throws -> Client {
    try Client(server: try address, timeoutSeconds: timeout, connections: connections, token: try bearerToken())
  }
}
