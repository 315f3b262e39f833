import Foundation
import KeyValueModel
import Support
import TestKit
import Testing

/// Peers that receive the records of their forwarded writes with the responses of the peer that appends.
@Suite("Records in responses of the peer that appends", .timeLimit(.minutes(60))) struct PenHandingTests {
  private static let balance = "/v1/objects/Account/1/balance"

  /// Two peers: the first appends, the second knows that and reaches the database through a proxy that can be cut.
  private struct Pair {
    let group: PeerGroup
    let way: FaultyProxy

    init(settings: [String: String] = [:], other: [String: String] = [:], _ headers: [String: String] = [:]) throws {
      group = try PeerGroup(0, settings: settings)
      way = try FaultyProxy(to: group.postgres.port)
      try group.add([:])
      try group.add(other, by: way.port)
      let written = try group[0].send("PUT", PenHandingTests.balance, headers, body: "1")
      guard written.status == 200 else { throw LoopbackError(written.text) }
      let cursor = headers.merging(["Keyway-Cursor": written["Keyway-Cursor"] ?? ""]) { $1 }
      guard try group[1].send("GET", PenHandingTests.balance, cursor).text == "1\n",
        try group.peers[1].status["pen"].text == group.peers[0].url
      else { throw LoopbackError("the pen is elsewhere") }
    }

    /// Writes at the second peer.
    func write(_ value: Int, _ headers: [String: String] = [:]) throws -> WireResponse {
      try group[1].send("PUT", PenHandingTests.balance, headers, body: "\(value)")
    }
  }

  @Test("A peer has what its writes did, and what others did before them, with the answers, without the database")
  func handing() throws {
    let pair = try Pair()
    let group = pair.group
    pair.way.refuse()
    #expect(try pair.write(2).status == 200)
    #expect(try group[1].send("GET", Self.balance).text == "2\n")
    try group[0].must("POST", "/v1/objects/Note", body: #"{"text":"others'"}"#)
    let (port, statuses) = (group.peers[1].port, Locked<[Int?]>([]))
    DispatchQueue.concurrentPerform(iterations: 40) { number in
      let answer = try? WireClient(port: port).send("POST", "/v1/objects/Note", body: "{\"text\":\"mine \(number)\"}")
      statuses.withLock { $0.append(answer?.status) }
    }
    #expect(statuses.withLock { $0 } == Array(repeating: 201, count: 40))
    let last = try pair.write(3)
    let journals = try (0..<2).map { try group.journal(of: $0, since: last["Keyway-Cursor"]) }
    #expect(journals[0] == journals[1] && journals[0].contains { $0.contains("others'") })
    // It continues through the database when that is back, and appends itself once the other one has ended.
    try pair.way.accept()
    try group.kill(0)
    #expect(try pair.write(4).status == 200)
    #expect(try group.peers[1].status["pen"].text == group.peers[1].url)
  }

  @Test("With keys, writes are accepted from, and records sent to, only a peer with a node's token")
  func tokens() throws {
    let directory = try ScratchDirectory()
    let keys = directory.file("keys.json")
    func token(_ subject: String, _ claims: [String] = []) throws -> String {
      let named = claims.flatMap { ["--claim", $0] }
      let made = try ChildProcess.run(
        PackageFolder.keyway, ["token", "--keys", keys, "--sub", subject, "--expires", "1h"] + named)
      return made.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
    try #require(ChildProcess.keyway("token", "--new-key", "--keys", keys).status == 0)
    let admin = try token("node", [#"roles=["keyway-admin"]"#])
    let user = try token("user")
    let client = ["Authorization": "Bearer \(admin)"]
    for (shown, status, balance) in [(admin, 200, "2\n"), (user, 503, "1\n")] {
      let file = try directory.write(shown + "\n", to: "token")
      let settings = ["access.keys": keys, "access.openMetrics": "true", "nodes.waitSeconds": "1"]
      let pair = try Pair(settings: settings, other: ["nodes.tokenFile": file], client)
      pair.way.refuse()
      #expect(try pair.write(2, client).status == status)
      // A write that the other peer refuses has to be appended by this one, which cannot reach the database.
      #expect(try pair.group[0].send("GET", Self.balance, client).text == balance)
    }
  }
}
