import Foundation
import KeyValueModel
import TestKit
import Testing

/// Objects that last with a stream of one node, written at others.
@Suite("Leases of streams at other nodes", .timeLimit(.minutes(60))) struct LeasesOfNodesTests {
  /// A short time, so that streams that are gone soon end.
  private static let settings = ["streams.resumeSeconds": "2"]

  /// A stream, with the header of a write whose object lasts with it.
  private struct Bond {
    let stream: WireStream
    let name: String
    var header: [String: String] { ["Keyway-Lifetime": "stream=\(name)"] }

    init(_ client: WireClient, _ headers: [String: String] = [:]) throws {
      stream = try client.stream("/v1/streams", headers)
      name = try #require(try stream.next().json["stream"].text)
    }

    /// Waits until a write at a node can name the stream. The write creates an object.
    func awaitNamed(by client: WireClient, _ object: String) -> Bool {
      Deadline().awaits {
        (try? client.send("PUT", "/v1/objects/\(object)", header, body: "{}"))?.isSuccess == true
      }
    }
  }

  private static func isGone(_ object: String, at clients: [WireClient]) -> Bool {
    clients.allSatisfy { client in
      Deadline().awaits { (try? client.send("GET", "/v1/objects/\(object)"))?.status == 404 }
    }
  }

  private static func exists(_ object: String, at client: WireClient) throws -> Bool {
    try client.send("GET", "/v1/objects/\(object)").status == 200
  }

  private static func creation(_ object: String, _ name: String) -> String {
    #"{"op":"create","object":"\#(object)","value":{},"lifetime":"stream=\#(name)"}"#
  }

  private static func transaction(_ operations: [String]) -> String {
    #"{"operations":[{"op":"set","object":"Account/1","keyPath":"balance","value":1},"#
      + operations.joined(separator: ",") + "]}"
  }

  @Test(
    "A stream of a leader, its followers or a follower of one is named in writes at each, and takes the objects along")
  func everywhere() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory, settings: Self.settings)
    let near = try NodeProcess("b", in: directory, following: leader.url, settings: Self.settings)
    let far = try NodeProcess("c", in: directory, following: near.url, settings: Self.settings)
    let other = try NodeProcess("d", in: directory, following: leader.url, settings: Self.settings)
    let nodes = [leader, near, far, other]
    for node in nodes { #expect(node.awaitReady()) }
    let clients = nodes.map(\.client)
    let bonds = try clients.map { try Bond($0) }
    let lasting = try Bond(far.client)
    for (maker, bond) in bonds.enumerated() {
      for (writer, client) in clients.enumerated() {
        #expect(bond.awaitNamed(by: client, "Note/known-\(maker)-\(writer)"))
        let made = try client.send("PUT", "/v1/objects/Note/\(maker)-\(writer)", bond.header, body: "{}")
        #expect(made.status == 201 && made.json["@lifetime"].text == "stream", "\(maker) \(writer): \(made.text)")
        let patched = try client.send("PATCH", "/v1/objects/Note/\(maker)-\(writer)", bond.header, body: "{}")
        #expect(patched.status == 200, "\(patched.text)")
        // A name in the right form that no stream has.
        let strange = String(bond.name.dropLast()) + (bond.name.hasSuffix("0") ? "1" : "0")
        let refused = try client.send(
          "PUT", "/v1/objects/Note/strange", ["Keyway-Lifetime": "stream=\(strange)"], body: "{}")
        #expect(refused.status == 422 && refused.problem == "invalid-value", "\(refused.text)")
        let body = Self.transaction([Self.creation("Note/no", bond.name), Self.creation("Note/strange", strange)])
        let undone = try client.send("POST", "/v1/transactions", body: body)
        #expect(undone.problem == "invalid-value" && undone.json["operation"].whole == 2, "\(undone.text)")
      }
    }
    // Several streams of several nodes in one transaction.
    for (writer, client) in clients.enumerated() {
      let all = bonds.indices.map { Self.creation("Note/all-\($0)-\(writer)", bonds[$0].name) }
      #expect(try client.send("POST", "/v1/transactions", body: Self.transaction(all)).status == 200)
      let once = lasting.header.merging(["Idempotency-Key": "\(writer)"]) { $1 }
      let first = try client.send("POST", "/v1/objects/Note", once, body: "{}")
      let again = try clients[(writer + 1) % 4].send("POST", "/v1/objects/Note", once, body: "{}")
      #expect(first.status == 201 && again["Location"] == first["Location"], "\(first.text) \(again.text)")
    }
    #expect(lasting.awaitNamed(by: leader.client, "Note/lasting"))
    for (maker, bond) in bonds.enumerated() {
      // Ends the stream by a deletion at any node, or with its connection.
      if maker % 2 == 0 {
        try clients[(maker + 1) % 4].must("DELETE", "/v1/streams/\(bond.name)")
      } else {
        bond.stream.socket.close()
      }
      for writer in clients.indices {
        for object in ["Note/\(maker)-\(writer)", "Note/all-\(maker)-\(writer)", "Note/known-\(maker)-\(writer)"] {
          #expect(Self.isGone(object, at: clients), "\(object)")
        }
        let refused = try clients[writer].send("PUT", "/v1/objects/Note/late", bond.header, body: "{}")
        #expect(refused.problem == "invalid-value")
      }
      for later in bonds.indices.dropFirst(maker + 1) {
        #expect(try Self.exists("Note/\(later)-0", at: leader.client))
      }
    }
    #expect(try Self.exists("Note/lasting", at: far.client))
    withExtendedLifetime(lasting.stream) {}
    for node in nodes.reversed() { try node.stop() }
    #expect(Set(try nodes.map { try #require($0.verified().split(separator: "\n").last) }).count == 1)
  }

  @Test("Objects that last with a follower's streams end if it is killed or restarted; those of others stay")
  func killed() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory, settings: Self.settings)
    let followers = try ["b", "c", "d"].map {
      try NodeProcess($0, in: directory, following: leader.url, settings: Self.settings)
    }
    for node in followers { #expect(node.awaitReady()) }
    let bonds = try followers.map { try Bond($0.client) }
    for (index, bond) in bonds.enumerated() { #expect(bond.awaitNamed(by: leader.client, "Note/\(index)")) }
    // A follower deletes nothing by itself, even when a stream is deleted there.
    let own = try Bond(leader.client)
    #expect(own.awaitNamed(by: followers[2].client, "Note/own"))
    #expect(try followers[2].awaitRevision(leader.revision))
    let short = try Bond(followers[2].client)
    try followers[2].client.must("DELETE", "/v1/streams/\(short.name)")
    try leader.client.must("PUT", "/v1/objects/Account/1/balance", body: "7")
    #expect(try followers[2].awaitRevision(leader.revision))
    #expect(try Self.exists("Note/own", at: followers[2].client))
    try followers[0].kill()
    try followers[1].kill()
    try followers[1].start()
    #expect(followers[1].awaitReady())
    for index in 0..<2 {
      #expect(Self.isGone("Note/\(index)", at: [leader.client, followers[1].client, followers[2].client]))
    }
    for client in [leader.client, followers[1].client, followers[2].client] {
      #expect(try Self.exists("Note/2", at: client) && Self.exists("Note/own", at: client))
    }
    try followers[2].client.must("DELETE", "/v1/streams/\(bonds[2].name)")
    #expect(Self.isGone("Note/2", at: [leader.client, followers[1].client, followers[2].client]))
    withExtendedLifetime(own.stream) {}
  }

  @Test(
    "Streams of followers outlive their leader, one that was promoted included; those of a follower that is gone end")
  func restarts() throws {
    let directory = try ScratchDirectory()
    let settings = Self.settings.merging(["streams.resumeSeconds": "8"]) { $1 }
    let leader = try NodeProcess("a", in: directory, settings: settings)
    let followers = try ["b", "c", "d", "e"].map {
      try NodeProcess($0, in: directory, following: leader.url, settings: settings)
    }
    for node in followers { #expect(node.awaitReady()) }
    let bonds = try followers.map { try Bond($0.client) }
    for (index, bond) in bonds.enumerated() { #expect(bond.awaitNamed(by: leader.client, "Note/\(index)")) }
    let (first, second) = (followers[0], followers[1])
    let own = try Bond(leader.client)
    #expect(own.awaitNamed(by: first.client, "Note/own"))
    try leader.kill()
    try second.kill()
    try leader.start()
    // When these are gone, the time in which the others had to come back has passed too.
    #expect(Self.isGone("Note/1", at: [leader.client, first.client]) && Self.isGone("Note/own", at: [first.client]))
    for index in [0, 2, 3] { #expect(try Self.exists("Note/\(index)", at: first.client)) }
    // At once, for a stream of a follower that reconnected to the leader.
    #expect(bonds[0].awaitNamed(by: leader.client, "Note/later"))
    for follower in [first, followers[2], followers[3]] { #expect(try follower.awaitRevision(leader.revision)) }
    try leader.stop()
    try followers[3].kill()
    try first.stop()
    let promoted = try ChildProcess.keyway("store", "promote", "--keep-epoch", "--store", first.directory)
    try #require(promoted.status == 0, "\(promoted.errors)")
    // On the port at which the others expect it.
    try first.start(["nodes.follow": nil, "port": "\(leader.port)"])
    let promotedClient = WireClient(port: leader.port, keepingAlive: first)
    let rest = [promotedClient, followers[2].client]
    for object in ["Note/0", "Note/later", "Note/3"] { #expect(Self.isGone(object, at: rest), "\(object)") }
    for client in rest { #expect(try Self.exists("Note/2", at: client)) }
    #expect(bonds[2].awaitNamed(by: promotedClient, "Note/new"))
    bonds[2].stream.socket.close()
    for object in ["Note/2", "Note/new"] { #expect(Self.isGone(object, at: rest), "\(object)") }
  }

  @Test("With keys, a write names the streams of its own client alone, at whatever node")
  func access() throws {
    let directory = try ScratchDirectory()
    let keys = directory.file("keys.json")
    let made = try ChildProcess.keyway("token", "--new-key", "--keys", keys)
    try #require(made.status == 0, "\(made.errors)")
    func token(_ subject: String, _ claims: String...) throws -> String {
      let result = try ChildProcess.run(
        PackageFolder.keyway,
        ["token", "--keys", keys, "--sub", subject, "--expires", "1h"] + claims.flatMap { ["--claim", $0] })
      guard result.status == 0 else { throw LoopbackError(result.errors) }
      return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
    let schema = try directory.write(
      "access: {read: 'identity != null', create: 'identity != null', update: 'identity != null', delete: 'true'}\n"
        + "entities: {Thing: {keys: {name: {type: string}}}}\n", to: "schema.yaml")
    let file = try directory.write(try token("node", #"roles=["keyway-admin"]"#) + "\n", to: "token")
    let settings = ["access.keys": keys, "schema": schema, "nodes.tokenFile": file].merging(Self.settings) { $1 }
    let leader = try NodeProcess("a", in: directory, settings: settings)
    let near = try NodeProcess("b", in: directory, following: leader.url, settings: settings)
    let far = try NodeProcess("c", in: directory, following: near.url, settings: settings)
    for node in [near, far] { #expect(node.awaitReady()) }
    let (alice, bob) = (
      ["Authorization": "Bearer \(try token("alice"))"], ["Authorization": "Bearer \(try token("bob"))"]
    )
    for maker in [far, near] {
      let bond = try Bond(maker.client, alice)
      func put(_ object: String, _ token: [String: String], at node: NodeProcess) throws -> WireResponse {
        try node.client.send("PUT", "/v1/objects/Thing/\(object)", bond.header.merging(token) { $1 }, body: "{}")
      }
      for (index, node) in [leader, near, far].enumerated() {
        #expect(Deadline().awaits { (try? put("\(index)", alice, at: node))?.isSuccess == true })
        #expect(try put("\(index)", bob, at: node).problem == "invalid-value")
        #expect(try put("\(index)", [:], at: node).status == 422)
      }
      // The nodes notify each other with their own tokens.
      try leader.client.must("DELETE", "/v1/streams/\(bond.name)", alice)
      for index in 0..<3 {
        #expect(
          Deadline().awaits { (try? far.client.send("GET", "/v1/objects/Thing/\(index)", alice))?.status == 404 })
      }
    }
  }
}
