import Foundation
import TestKit
import Testing

/// The console, used in Chromium by roles and accessible names; `Scripts/console.py` has the steps.
@Suite("The console in Chromium", .serialized) struct ConsoleTests {
  /// Runs a step. A failure has the step's output.
  private func expect(_ step: String, _ server: ServerProcess, _ rest: String...) throws {
    let browser = try ChildProcess.start(
      PackageFolder.python, [PackageFolder.script("console.py"), server.url, step] + rest)
    let status = try browser.exitStatus()
    #expect(status == 0 && browser.output.contains("done \(step)"), "\(browser.output)\(browser.errors)")
  }

  @Test(
    "It shows, and does, what its users ask of it",
    arguments: [
      "entities", "table", "sections", "editing", "lines", "exactness", "conflicts", "leaving", "many-rows", "objects",
      "members", "creating", "stream", "journal", "status",
    ])
  func using(_ step: String) throws {
    let server = try ServerProcess()
    try expect(step, server)
    #expect(try server.stop() == 0)
  }

  @Test("axe-core finds nothing in any view, dark or light, and none is wider than its window, from 380 pixels on")
  func looking() throws {
    let server = try ServerProcess()
    try expect("looks", server)
    #expect(try server.stop() == 0)
  }

  /// A server with keys, and tokens that they signed.
  private final class Guarded {
    let folder: ScratchDirectory
    let server: ServerProcess

    init(schema: String = "/Config/example/schema.yaml") throws {
      folder = try ScratchDirectory()
      _ = try Self.keyway("token", "--new-key", "--keys", folder.file("keys.json"))
      server = try ServerProcess(
        "--schema", PackageFolder.root + schema, settings: ["access.keys": folder.file("keys.json"), "seed": "none"])
    }

    func token(_ sub: String, roles: String) throws -> String {
      try Self.keyway("token", "--keys", folder.file("keys.json"), "--sub", sub, "--claim", "roles=\(roles)")
    }

    private static func keyway(_ arguments: String...) throws -> String {
      let process = try ChildProcess.start(PackageFolder.keyway, arguments)
      #expect(try process.exitStatus() == 0)
      return process.output.trimmingCharacters(in: .newlines)
    }
  }

  @Test("On a server with keys it asks for a token, keeps it where no script reads it, and forgets it")
  func signingIn() throws {
    let guarded = try Guarded()
    let token = try guarded.token("ann", roles: #"["keyway-admin"]"#)
    try expect("session", guarded.server, token)
    #expect(try guarded.server.stop() == 0)
  }

  @Test("Users who may not see a key see the rest, and get an error for a forbidden write")
  func reading() throws {
    let guarded = try Guarded(schema: "/Config/access/feed.yaml")
    let admin = ["Authorization": "Bearer \(try guarded.token("root", roles: #"["keyway-admin"]"#))"]
    let client = guarded.server.client
    try client.must("PUT", "/v1/objects/Post/1", admin, body: #"{"author":"ann","text":"hers"}"#)
    try client.must("PUT", "/v1/objects/Post/2", admin, body: #"{"author":"bob","text":"another's"}"#)
    try expect("reader", guarded.server, try guarded.token("ann", roles: "[]"))
    #expect(try guarded.server.stop() == 0)
  }
}
