import Foundation
import TestKit
import Testing

/// Serves the application of the page "Your first application", unchanged, to two tabs of Chromium.
@Suite("Your first application", .serialized) struct FirstApplicationTests {
  private static func page() throws -> String {
    let path = PackageFolder.root + "/Sources/keyway/Documentation.docc/FirstApplication.md"
    return try String(contentsOfFile: path, encoding: .utf8)
  }

  /// Returns the blocks of a language, without their fences.
  private static func blocks(_ language: String) throws -> [String] {
    try page().components(separatedBy: "```\(language)\n").dropFirst().map { rest in
      rest.components(separatedBy: "\n```")[0] + "\n"
    }
  }

  /// Serves an application: the page's own, unless another is given.
  private static func serve(
    schema: String, html: String? = nil, settings: [String: String], in folder: ScratchDirectory
  ) throws -> ServerProcess {
    let html = try html ?? #require(try blocks("html").first)
    try FileManager.default.createDirectory(atPath: folder.file("app"), withIntermediateDirectories: true)
    try html.write(toFile: folder.file("app/index.html"), atomically: true, encoding: .utf8)
    try schema.write(toFile: folder.file("tasks.yaml"), atomically: true, encoding: .utf8)
    return try ServerProcess(
      "--schema", folder.file("tasks.yaml"), "--store", folder.file("tasks"), "--public", folder.file("app"),
      settings: settings.merging(["seed": "none"]) { $1 })
  }

  private static func use(_ server: ServerProcess, _ token: String...) throws -> String {
    let browser = try ChildProcess.start(
      PackageFolder.python, [PackageFolder.script("first_application.py"), server.url] + token)
    let status = try browser.exitStatus()
    return status == 0 ? browser.output : "\(browser.output)\(browser.errors)"
  }

  @Test("A change in one tab appears in the other, and the page has at most 40 lines of HTML")
  func using() throws {
    let folder = try ScratchDirectory()
    let server = try Self.serve(schema: try #require(try Self.blocks("yaml").first), settings: [:], in: folder)
    #expect(try Self.use(server) == "done\n")
    #expect(try server.stop() == 0)
    #expect(try Self.blocks("html")[0].split(separator: "\n").count <= 40)
    // The README shows the same.
    let readme = try String(contentsOfFile: PackageFolder.root + "/README.md", encoding: .utf8)
    for block in [try Self.blocks("html")[0], try Self.blocks("yaml")[0]] { #expect(readme.contains(block)) }
  }

  @Test("With the rules of the page and a session the same holds")
  func signingIn() throws {
    let blocks = try Self.blocks("yaml")
    try #require(blocks.count == 3)
    let keys = try #require(blocks[0].components(separatedBy: "  Task:\n").last)
    let folder = try ScratchDirectory()
    try Self.keyway("token", "--new-key", "--keys", folder.file("keys.json"))
    let token = try Self.keyway("token", "--keys", folder.file("keys.json"), "--sub", "ann")
    let server = try Self.serve(
      schema: blocks[2] + keys, settings: ["access.keys": folder.file("keys.json")], in: folder)
    #expect(try Self.use(server, token) == "done\n")
    #expect(try server.client.send("POST", "/v1/objects/Task", body: #"{"title":"t"}"#).status == 401)
    #expect(try server.stop() == 0)
  }

  @Test("With what the page adds, each tab shows who is here, and a closed one is gone from the others")
  func visiting() throws {
    let (schema, html) = (try Self.blocks("yaml"), try Self.blocks("html"))
    let script = try #require(try Self.blocks("js").first)
    let page = html[0].replacing("</h1>\n", with: "</h1>\n" + html[1])
      .replacing("</script>", with: script + "</script>")
    let folder = try ScratchDirectory()
    let server = try Self.serve(schema: schema[0] + schema[1], html: page, settings: [:], in: folder)
    #expect(try Self.use(server, "visitors") == "done\n")
    #expect(try server.stop() == 0)
    #expect(page.split(separator: "\n").count <= 60)
  }

  @discardableResult
  private static func keyway(_ arguments: String...) throws -> String {
    let process = try ChildProcess.start(PackageFolder.keyway, arguments)
    try #require(try process.exitStatus() == 0)
    return process.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
