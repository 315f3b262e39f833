import Foundation
import KeyValueModel
import TestKit
import Testing

/// Stores of former versions must open. Each folder of `Fixtures` is a set of stores that `Scripts/former_stores.py`
/// made with one version, each with the objects and events that this version served.
@Suite("Stores of former versions")
struct FormerStoreTests {
  private static let fixtures = PackageFolder.root + "/Tests/IntegrationTests/Fixtures"

  private static func sets() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: fixtures) }

  /// The objects and events that the version served of a store.
  private struct Record {
    let objects: [(path: String, json: String)]
    /// The cursor of a client that has seen the beginning.
    let since: String
    let until: String
    /// The lines `id`, `event` and `data` of the events that the client has not seen.
    let events: [String]

    init(_ name: String, of set: String) throws {
      let value = try Value(json: String(contentsOfFile: "\(fixtures)/\(set)/\(name).json", encoding: .utf8))
      let paths = value["objects"].names
      objects = paths.map { ($0, value["objects"][$0].text ?? "") }
      since = try #require(value["since"].text)
      until = try #require(value["until"].text)
      events = (value["events"].elements ?? []).compactMap(\.text)
    }
  }

  /// Copies a store of a set into a folder, where it can be written.
  private func copy(_ name: String, of set: String, into folder: ScratchDirectory) throws -> String {
    try FileManager.default.copyItem(atPath: "\(Self.fixtures)/\(set)/\(name)", toPath: folder.file(name))
    return folder.file(name)
  }

  private func compare(_ server: ServerProcess, with record: Record) throws {
    #expect(!record.objects.isEmpty && !record.events.isEmpty)
    #expect(try server.cursor == record.until)
    for (path, json) in record.objects { #expect(try server.client.must("GET", path).text == json, "\(path)") }
    try compareEvents(server, with: record)
  }

  /// Expects that a client resumes from its cursor, and later receives new writes.
  private func compareEvents(_ server: ServerProcess, with record: Record) throws {
    let stream = try server.client.stream("/v1/objects/Team/1", ["Last-Event-ID": record.since])
    let missed = try stream.events { $0.id == record.until }
    let lines = missed.flatMap(\.lines).filter { line in ["id: ", "event: ", "data: "].contains { line.hasPrefix($0) } }
    #expect(lines == record.events)
    try server.set("Team/1/name", #""of today""#)
    #expect(try stream.next().text.contains("of today"))
  }

  @Test(
    "A leader's store opens with its objects, and cursors resume; its follower goes on with its own",
    arguments: try sets())
  func nodes(set: String) throws {
    let folder = try ScratchDirectory()
    let schema = "\(Self.fixtures)/\(set)/schema.yaml"
    let leader = try ServerProcess(
      "--schema", schema, "--store", copy("leader", of: set, into: folder), settings: ["nodes.followers": "true"])
    let follower = try ServerProcess(
      "--schema", schema, "--store", copy("follower", of: set, into: folder), "--follow", leader.url)
    #expect(Deadline().awaits { (try? follower.client.send("GET", "/readyz"))?.status == 200 })
    try compare(follower, with: Record("follower", of: set))
    // The follower has forwarded a write to it.
    #expect(try leader.client.must("GET", "/v1/objects/Team/1/name").text == "\"of today\"\n")
  }

  @Test("A leader's store opens alone, with its objects, and cursors resume", arguments: try sets())
  func alone(set: String) throws {
    let folder = try ScratchDirectory()
    let store = try copy("leader", of: set, into: folder)
    let server = try ServerProcess("--schema", "\(Self.fixtures)/\(set)/schema.yaml", "--store", store)
    try compare(server, with: Record("leader", of: set))
    #expect(try server.stop() == 0)
    let verified = try ChildProcess.keyway("store", "verify", "--store", store)
    #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
  }

  @Test("A journal in PostgreSQL opens with its objects, and cursors resume", arguments: try sets())
  func peer(set: String) throws {
    let postgres = try PostgresServer.shared()
    let database = try postgres.makeDatabase()
    try postgres.execute(String(contentsOfFile: "\(Self.fixtures)/\(set)/peer.sql", encoding: .utf8), in: database)
    let server = try ServerProcess("--schema", "\(Self.fixtures)/\(set)/schema.yaml", "--journal", database)
    #expect(Deadline().awaits { (try? server.client.send("GET", "/readyz"))?.status == 200 })
    try compare(server, with: Record("peer", of: set))
  }
}
