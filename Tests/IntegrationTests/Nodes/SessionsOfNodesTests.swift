import Foundation
import LoopbackKit
import Testing

/// Sessions that are begun, used and ended at several nodes, with the built program.
@Suite("Sessions of several nodes", .timeLimit(.minutes(60))) struct SessionsOfNodesTests {
  /// A file of keys, and the token of an admin.
  private static func keys(in directory: ScratchDirectory) throws -> (file: String, token: String) {
    let keys = directory.file("keys.json")
    let made = try ChildProcess.keyway("token", "--new-key", "--keys", keys)
    try #require(made.status == 0, "\(made.errors)")
    let signed = try ChildProcess.keyway(
      "token", "--keys", keys, "--sub", "root", "--expires", "1h", "--claim", #"roles=["keyway-admin"]"#)
    try #require(signed.status == 0, "\(signed.errors)")
    return (keys, signed.output.trimmingCharacters(in: .whitespacesAndNewlines))
  }

  /// Begins a session at each of two nodes, uses it at both, and ends it at the other one.
  private static func check(_ one: WireClient, _ other: WireClient, token: String) throws {
    func status(_ cookie: [String: String], at client: WireClient, from cursor: String? = nil) throws -> Int {
      let headers = cursor.map { cookie.merging(["Keyway-Cursor": $0]) { $1 } } ?? cookie
      return try client.send("GET", "/v1/objects/Note", headers).status
    }
    for (first, ending) in [(one, other), (other, one)] {
      let begun = try first.send("POST", "/v1/session", ["Authorization": "Bearer \(token)"])
      #expect(begun.status == 204, "\(begun.text)")
      let cookie = ["Cookie": String(try #require(begun["Set-Cookie"]?.split(separator: ";").first))]
      let beginning = try #require(begun["Keyway-Cursor"])
      // The node that was not asked has it with the state that the answer names, or once it has come there.
      #expect(try status(cookie, at: first) == 200)
      #expect(try status(cookie, at: ending, from: beginning) == 200)
      // A write of the session goes the way of every other.
      let note = ["Keyway-Cursor": beginning].merging(cookie) { $1 }
      for client in [one, other] { try client.must("PUT", "/v1/objects/Note/1", note, body: "{}") }
      let stream = try first.stream("/v1/streams", cookie)
      let ended = try ending.send("DELETE", "/v1/session", cookie)
      #expect(ended.status == 204 && ended["Set-Cookie"]?.contains("Max-Age=0") == true, "\(ended.text)")
      let cursor = try #require(ended["Keyway-Cursor"])
      #expect(try [one, other].map { try status(cookie, at: $0, from: cursor) } == [401, 401])
      #expect(try stream.rest().last?.name == "bye")
    }
  }

  @Test("A session that is ended at a leader or its follower is ended at the other, with its streams")
  func followers() throws {
    let directory = try ScratchDirectory()
    let (keys, token) = try Self.keys(in: directory)
    let settings = ["access.keys": keys, "nodes.tokenFile": try directory.write(token, to: "token")]
    let leader = try NodeProcess("a", in: directory, settings: settings)
    let follower = try NodeProcess("b", in: directory, following: leader.url, settings: settings)
    #expect(follower.awaitReady())
    try Self.check(leader.client, follower.client, token: token)
  }

  @Test("A session that was begun before a follower or a restart is good there, and one of a follower in memory too")
  func copies() throws {
    let directory = try ScratchDirectory()
    let (keys, token) = try Self.keys(in: directory)
    let settings = ["access.keys": keys, "nodes.tokenFile": try directory.write(token, to: "token")]
    for store in ["memory", directory.file("leader")] {
      let leader = try NodeProcess("a", in: directory, settings: settings.merging(["store": store]) { $1 })
      let begun = try leader.client.must("POST", "/v1/session", ["Authorization": "Bearer \(token)"])
      let cookie = ["Cookie": String(try #require(begun["Set-Cookie"]?.split(separator: ";").first))]
      let follower = try NodeProcess(
        "b", in: directory, following: leader.url, settings: settings.merging(["store": "memory"]) { $1 })
      #expect(follower.awaitReady())
      #expect(try follower.client.send("GET", "/v1/entities", cookie).status == 200)
      try follower.stop()
      try leader.stop()
      try leader.start()
      #expect(try leader.client.send("GET", "/v1/entities", cookie).status == (store == "memory" ? 401 : 200))
      try leader.stop()
    }
  }

  @Test("A session that is ended at a peer is ended at the other, with its streams")
  func peers() throws {
    let directory = try ScratchDirectory()
    let (keys, token) = try Self.keys(in: directory)
    let group = try PeerGroup(2, settings: ["access.keys": keys])
    try Self.check(group[0], group[1], token: token)
  }
}
