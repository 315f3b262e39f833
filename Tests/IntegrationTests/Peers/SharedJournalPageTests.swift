import Foundation
import TestKit
import Testing

/// Runs the blocks of the page "A journal in PostgreSQL", one after the other.
@Suite("The commands of the page about a journal in PostgreSQL")
struct SharedJournalPageTests {
  @Test("Three peers on one machine print what the page says", .timeLimit(.minutes(60)))
  func peers() throws {
    let page = PackageFolder.root + "/Sources/keyway/Documentation.docc/SharedJournal.md"
    let steps = ConsoleStep.blocks(of: try String(contentsOfFile: page, encoding: .utf8), behind: "peers").flatMap {
      $0
    }
    try #require(steps.count > 8)
    let database = try PostgresServer.shared().makeDatabase()
    let ports = try (0..<3).map { _ in try LoopbackPort.free() }
    let commands = steps.map { step in
      var command = step.command.replacing("postgres://keyway@127.0.0.1/keyway", with: database)
      for (index, port) in ports.enumerated() { command = command.replacing("808\(index + 1)", with: "\(port)") }
      return command
    }
    let outputs = try ConsoleStep.run(commands)
    #expect(outputs.count == steps.count, "it stops after: $ \(steps[max(0, outputs.count - 1)].command)")
    for (step, output) in zip(steps, outputs) { #expect(output == step.output, "$ \(step.command)") }
  }

  @Test("A migration takes all peers to another schema: those that run end, and those with the old one do not start")
  func migrating() throws {
    let folder = try ScratchDirectory()
    let names = ["old", "new"].map { "\(folder.path)/\($0).yaml" }
    for (path, key) in zip(names, ["name", "name: { type: string }, size"]) {
      let yaml = "entities: {Thing: {keys: {\(key): { type: string }}}}"
      try yaml.write(toFile: path, atomically: true, encoding: .utf8)
    }
    let group = try PeerGroup(1, settings: ["schema": names[0], "seed": "none"])
    try group[0].must("PUT", "/v1/objects/Thing/1", body: #"{"name":"one"}"#)
    let migrate = ["store", "migrate", "--journal", group.database, "--schema", names[1]]
    let dry = try ChildProcess.run(PackageFolder.keyway, migrate + ["--dry-run"])
    #expect(dry.status == 0 && dry.output.contains("nothing was changed"))
    #expect(try group.peers[0].child.isRunning && group[0].send("GET", "/readyz").status == 200)
    let done = try ChildProcess.run(PackageFolder.keyway, migrate)
    #expect(done.status == 0, "\(done.errors)")
    #expect(try group.peers[0].child.exitStatus() == 1)
    let refused = try ChildProcess.keyway(
      "serve", "--port", "0", "--journal", group.database, "--schema", names[0])
    #expect(refused.status == 1 && refused.errors.contains("another schema"))
    let next = try group.start(["schema": names[1]])
    #expect(try next.client.json("/v1/objects/Thing/1")["name"].text == "one")
    try next.client.must("PUT", "/v1/objects/Thing/1/size", body: "\"large\"")
  }
}
