import Foundation
import TestKit
import Testing

/// Sessions that are begun, used and ended at several nodes, with the built program.
@Suite("Sessions of several nodes", .timeLimit(.minutes(60))) struct SessionsOfNodesTests {
  /// Keys, the token of an admin, and the settings of nodes that authenticate to each other with the token of a node.
  private struct Keys {
    let token: String
    let settings: [String: String]

    init(in directory: ScratchDirectory) throws {
      let keys = directory.file("keys.json")
      let made = try ChildProcess.keyway("token", "--new-key", "--keys", keys)
      try #require(made.status == 0, "\(made.errors)")
      func token(_ role: String) throws -> String {
        let signed = try ChildProcess.keyway(
          "token", "--keys", keys, "--sub", role, "--expires", "1h", "--claim", #"roles=["\#(role)"]"#)
        try #require(signed.status == 0, "\(signed.errors)")
        return signed.output.trimmingCharacters(in: .whitespacesAndNewlines)
      }
      self.token = try token("keyway-admin")
      settings = ["access.keys": keys, "nodes.tokenFile": try directory.write(token("keyway-node"), to: "token")]
    }

    var admin: [String: String] { ["Authorization": "Bearer \(token)"] }
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
      // The other node has the session at the state that the response names, or once it has reached it.
      #expect(try status(cookie, at: first) == 200)
      #expect(try status(cookie, at: ending, from: beginning) == 200)
      // A write of the session is forwarded like any other.
      let note = ["Keyway-Cursor": beginning].merging(cookie) { $1 }
      for client in [one, other] { try client.must("PUT", "/v1/objects/Note/1", note, body: "{}") }
      let stream = try first.stream("/v1/streams", cookie)
      let ended = try ending.send("DELETE", "/v1/session", cookie)
      #expect(ended.status == 204 && ended["Set-Cookie"]?.contains("Max-Age=0") == true, "\(ended.text)")
      let cursor = try #require(ended["Keyway-Cursor"])
      let statuses = try [one, other].map { try status(cookie, at: $0, from: cursor) }
      #expect(statuses == [401, 401])
      #expect(try stream.rest().last?.name == "bye")
    }
  }

  /// Makes an account at one of two nodes, signs in at the other, and changes the password at each.
  private static func checkAccounts(_ one: WireClient, _ other: WireClient, _ admin: [String: String]) throws {
    let account = "/v1/access/accounts/ann"
    func change(to password: String, at client: WireClient) throws -> String {
      let response = try client.must("PUT", account, admin, body: #"{"password":"\#(password)"}"#)
      return try #require(response["Keyway-Cursor"])
    }
    var (password, cursor) = ("correct horse", try change(to: "correct horse", at: other))
    for (first, second, next) in [(one, other, "battery staple"), (other, one, "purple monkey")] {
      let body = #"{"name":"ann","password":"\#(password)"}"#
      let signedIn = try first.send("POST", "/v1/session", ["Keyway-Cursor": cursor], body: body)
      #expect(signedIn.status == 200 && signedIn.json["identity"]["sub"].text == "account:ann", "\(signedIn.text)")
      let cookie = String(try #require(signedIn["Set-Cookie"]?.split(separator: ";").first))
      func statuses(from cursor: String) throws -> [Int] {
        try [first, second].map {
          try $0.send("GET", "/v1/entities", ["Cookie": cookie, "Keyway-Cursor": cursor]).status
        }
      }
      let beginning = try #require(signedIn["Keyway-Cursor"])
      #expect(try statuses(from: beginning) == [200, 200])
      (password, cursor) = (next, try change(to: next, at: second))
      #expect(try statuses(from: cursor) == [401, 401])
    }
  }

  private static let accounts = ["access.accounts": "true", "access.accountPrefix": "account:"]

  @Test("A session that is ended at a leader or its follower is ended at the other, with its streams")
  func followers() throws {
    let directory = try ScratchDirectory()
    let keys = try Keys(in: directory)
    let settings = keys.settings.merging(Self.accounts) { $1 }
    let leader = try NodeProcess("a", in: directory, settings: settings)
    let follower = try NodeProcess("b", in: directory, following: leader.url, settings: settings)
    #expect(follower.awaitReady())
    try Self.check(leader.client, follower.client, token: keys.token)
    try Self.checkAccounts(leader.client, follower.client, keys.admin)
  }

  @Test("A session that was begun before a follower or a restart is good there, and one of a follower in memory too")
  func copies() throws {
    let directory = try ScratchDirectory()
    let keys = try Keys(in: directory)
    let settings = keys.settings
    for store in ["memory", directory.file("leader")] {
      let leader = try NodeProcess("a", in: directory, settings: settings.merging(["store": store]) { $1 })
      let begun = try leader.client.must("POST", "/v1/session", keys.admin)
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
    let keys = try Keys(in: directory)
    let group = try PeerGroup(2, settings: keys.settings.merging(Self.accounts) { $1 })
    try Self.check(group[0], group[1], token: keys.token)
    try Self.checkAccounts(group[0], group[1], keys.admin)
  }

  @Test("A follower without its leader refuses identities after access.staleSeconds, and nobody else")
  func cutOff() throws {
    let directory = try ScratchDirectory()
    let keys = try Keys(in: directory)
    let leader = try NodeProcess("a", in: directory, settings: keys.settings)
    let (strict, lenient) = (["access.staleSeconds": "3"], ["access.staleSeconds": "0"])
    let cut = try NodeProcess("b", in: directory, following: leader.url, settings: keys.settings.merging(strict) { $1 })
    let other = try NodeProcess(
      "c", in: directory, following: leader.url, settings: keys.settings.merging(lenient) { $1 })
    #expect(cut.awaitReady() && other.awaitReady())
    func status(_ node: NodeProcess, _ target: String, _ headers: [String: String]) -> Int? {
      (try? node.client.send("GET", target, headers))?.status
    }
    let stream = try cut.client.stream("/v1/streams", keys.admin)
    #expect(status(cut, "/v1/entities", keys.admin) == 200)
    try leader.kill()
    #expect(Deadline().awaits { status(cut, "/v1/entities", keys.admin) == 503 })
    let refused = try cut.client.send("GET", "/v1/entities", keys.admin)
    #expect(refused.problem == "leader-unreachable" && refused["Retry-After"] != nil)
    for target in ["/v1/objects/Note", "/healthz", "/v1/session"] { #expect(status(cut, target, [:]) == 200) }
    #expect(status(cut, "/v1/status", keys.admin) == 200)
    #expect(status(other, "/v1/entities", keys.admin) == 200)
    try leader.start()
    #expect(Deadline().awaits { status(cut, "/v1/entities", keys.admin) == 200 })
    // The stream still exists, and continues.
    try leader.client.must("PUT", "/v1/objects/Note/1", keys.admin, body: "{}")
    #expect(try cut.client.send("GET", "/v1/streams", keys.admin).json["streams"].items.count == 1)
    withExtendedLifetime(stream) {}
  }
}
