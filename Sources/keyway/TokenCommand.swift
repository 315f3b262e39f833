import ArgumentParser
import CommandSupport
import Foundation
import Glibc
import KeyValueModel
import KeywayServer

/// Implements `keyway token`: makes keys and tokens for development.
struct TokenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token",
    abstract: "Makes a key for access.keys, or a token signed with it, for development.",
    discussion: """
      keyway token --new-key
      keyway serve --set access.keys=keyway-keys.json
      keyway token --sub alice --claim roles='["keyway-admin"]' --expires 1h

      Keep the file secret: anyone who has it can sign in as anyone. In production, let a login service sign tokens
      with a key of its own, and give the server the public part.
      """)

  @Flag(help: "Write a new key to the file, which must not exist yet.")
  var newKey = false

  @Option(help: ArgumentHelp("The file of keys, a JWK Set.", valueName: "path"))
  var keys = "keyway-keys.json"

  @Option(help: "The subject of the token.")
  var sub: String?

  @Option(help: ArgumentHelp("A claim; may be repeated. \(TypedValue.help)", valueName: "name=value"))
  var claim: [String] = []

  @Option(help: ArgumentHelp("The validity of the token.", valueName: "30s, 15m, 1h or 7d"))
  var expires = "1h"

  func validate() throws {
    guard newKey != (sub != nil) else { throw ValidationError("use either --new-key or --sub") }
    guard newKey || Self.seconds(expires) != nil else {
      throw ValidationError("--expires must be a number followed by s, m, h or d, such as 15m")
    }
    for claim in claim where claim.split(separator: "=", maxSplits: 1).count != 2 {
      throw ValidationError("--claim must be name=value, not '\(claim)'")
    }
  }

  func run() throws {
    if newKey { return try writeKey() }
    let text = Array(try TextFile.read(keys).utf8)
    let set: KeySet
    do throws(KeyDefect) {
      set = try KeySet(json: text)
    } catch {
      throw CommandFailure("\(keys): \(error)")
    }
    guard let key = DevelopmentKey(of: set) else {
      throw CommandFailure("\(keys) has no shared secret: only public keys, which cannot sign")
    }
    let now = Int64(Date().timeIntervalSince1970)
    var claims: JSONObject = [
      "sub": .string(sub ?? ""), "iat": .integer(now), "exp": .integer(now + (Self.seconds(expires) ?? 0)),
    ]
    for claim in claim {
      let parts = claim.split(separator: "=", maxSplits: 1).map(String.init)
      claims[parts[0]] = try TypedValue.value(parts[1], after: parts[0] + "=")
    }
    StandardOutput.text(key.token(claims))
  }

  /// Writes a new key to a file that only its owner can read.
  private func writeKey() throws {
    try NewFile.write(DevelopmentKey.makeSet(), to: keys, isPrivate: true)
    StandardOutput.text("wrote \(keys): start the server with --set access.keys=\(keys)")
  }

  /// Returns the seconds of a text such as `15m`, or nil if it is invalid.
  private static func seconds(_ text: String) -> Int64? {
    guard let unit = text.last, let factor: Int64 = ["s": 1, "m": 60, "h": 3_600, "d": 86_400][unit],
      let number = Int64(text.dropLast()), (1...100_000_000).contains(number)
    else { return nil }
    return number * factor
  }
}
