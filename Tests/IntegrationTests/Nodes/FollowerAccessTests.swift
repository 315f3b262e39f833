import Foundation
import KeyValueModel
import TestKit
import Testing

/// Servers without keys that would serve data that another server, or a schema, protects.
@Suite("Followers without keys", .timeLimit(.minutes(60))) struct FollowerAccessTests {
  private let directory: ScratchDirectory
  private let keys: [String: String]

  init() throws {
    directory = try ScratchDirectory()
    let file = directory.file("keys.json")
    let made = try ChildProcess.keyway("token", "--new-key", "--keys", file)
    try #require(made.status == 0, "\(made.errors)")
    let token = try ChildProcess.keyway(
      "token", "--keys", file, "--sub", "node", "--claim", #"roles=["keyway-admin"]"#, "--expires", "1h")
    keys = ["access.keys": file, "nodes.tokenFile": try directory.write(token.output, to: "token")]
  }

  /// Starts a follower that must not come up. Returns its exit status and its errors.
  private func refused(_ leader: NodeProcess, store: String) throws -> (status: Int32, errors: String) {
    let port = try NodePorts.take()
    let result = try ChildProcess.keyway(
      "serve", "--port", "\(port)", "--store", store, "--follow", leader.url, "--set",
      "nodes.tokenFile=\(keys["nodes.tokenFile"] ?? "")")
    return (result.status, result.errors)
  }

  @Test("A follower without keys of a leader that has some is refused, unless access.open says that this is meant")
  func starting() throws {
    let leader = try NodeProcess("a", in: directory, settings: keys)
    let wrongSetting = try ChildProcess.keyway("serve", "--set", "port=70000")
    let (status, errors) = try refused(leader, store: directory.file("b"))
    #expect(status == wrongSetting.status && status != 0)
    #expect(errors.contains("authenticates its clients (access.keys)") && errors.contains("access.open"), "\(errors)")
    #expect(!errors.contains("serving"))
    #expect(try refused(leader, store: "memory").status == status)
    let open = keys.merging(["access.open": "true", "access.keys": "none"]) { $1 }
    let follower = try NodeProcess("c", in: directory, following: leader.url, settings: open)
    #expect(follower.awaitReady())
    #expect(try follower.client.send("GET", "/v1/objects/Account/1").status == 200)
  }

  @Test("A follower without keys ends when its leader turns access on, and is refused then, also without its leader")
  func turningOn() throws {
    let leader = try NodeProcess("a", in: directory)
    let shown = ["nodes.tokenFile": keys["nodes.tokenFile"]]
    let follower = try NodeProcess("b", in: directory, following: leader.url, settings: shown.compactMapValues { $0 })
    #expect(follower.awaitReady())
    try leader.stop()
    try leader.start(keys.mapValues { $0 })
    let child = follower.server.child
    #expect(Deadline().awaits { !child.isRunning })
    #expect(try child.exitStatus() != 0 && child.errors.contains("authenticates its clients"), "\(child.errors)")
    #expect(try refused(leader, store: follower.directory).errors.contains("authenticates its clients"))
    try leader.stop()
    #expect(try refused(leader, store: follower.directory).errors.contains("authenticates its clients"))
    // With the keys it continues, and authenticates its clients.
    try leader.start()
    try follower.start(keys.mapValues { $0 })
    #expect(follower.awaitReady())
    #expect(try follower.client.send("GET", "/v1/journal").status == 401)
  }

  @Test("A server whose schema has rules does not start without keys, alone or with others")
  func rules() throws {
    let schema = try directory.write(
      "entities: {Box: {access: {read: 'false'}, keys: {name: {type: string}}}}\n", to: "schema.yaml")
    let result = try ChildProcess.keyway("serve", "--port", "0", "--store", "memory", "--schema", schema)
    #expect(result.status == 1 && result.errors.contains("the schema has access rules, but no keys are set"))
    let open = ["schema": schema, "access.open": "true"]
    let leader = try NodeProcess("a", in: directory, settings: open)
    let (status, errors) = try refused(leader, store: directory.file("b"))
    #expect(status == 1 && errors.contains("the schema has access rules, but no keys are set"), "\(errors)")
  }

  @Test("A server that does not say so cannot be followed, and the node that tries says what is missing")
  func notFollowable() throws {
    let leader = try NodeProcess("a", in: directory, settings: ["nodes.followers": "false"])
    #expect(try leader.client.send("GET", "/v1/nodes").status == 404)
    let port = try NodePorts.take()
    let child = try ChildProcess.start(
      PackageFolder.keyway, ["serve", "--port", "\(port)", "--store", "memory", "--follow", leader.url])
    #expect(Deadline().awaits { child.errors.contains("set nodes.followers to true there") }, "\(child.errors)")
    #expect(try WireClient(port: port).send("GET", "/readyz").status == 503)
  }
}
