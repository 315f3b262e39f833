import Foundation
import LoopbackKit
import Testing

/// Sessions that are ended at one node and used at another, with the built program.
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

  /// Begins a session at each of two nodes and ends it at the other one, and looks at both.
  private static func check(_ one: WireClient, _ other: WireClient, token: String) throws {
    func status(_ cookie: [String: String], at client: WireClient, from cursor: String? = nil) throws -> Int {
      let headers = cursor.map { cookie.merging(["Keyway-Cursor": $0]) { $1 } } ?? cookie
      return try client.send("GET", "/v1/objects/Note", headers).status
    }
    for (beginning, ending) in [(one, other), (other, one)] {
      let begun = try beginning.send("POST", "/v1/session", ["Authorization": "Bearer \(token)"])
      let cookie = ["Cookie": String(try #require(begun["Set-Cookie"]?.split(separator: ";").first))]
      #expect(try [one, other].map { try status(cookie, at: $0) } == [200, 200])
      let stream = try beginning.stream("/v1/streams", cookie)
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

  @Test("A session that is ended at a peer is ended at the other, with its streams")
  func peers() throws {
    let directory = try ScratchDirectory()
    let (keys, token) = try Self.keys(in: directory)
    let group = try PeerGroup(2, settings: ["access.keys": keys])
    try Self.check(group[0], group[1], token: token)
  }
}
