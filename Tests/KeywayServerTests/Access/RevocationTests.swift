import Cluster
import Foundation
import KeyValueModel
import KeywayServer
import Store
import Support
import TestKit
import Testing

/// Tokens that are refused before they expire.
@Suite("Revocations") struct RevocationTests {
  private static let target = "/v1/access/revocations"

  private func status(_ guarded: GuardedServer, _ headers: [String: String]) throws -> Int {
    try guarded.client.send("GET", "/v1/entities", headers).status
  }

  @Test("A revocation refuses the tokens issued before it, remembered ones and sessions too, and ends their streams")
  func revoking() throws {
    let guarded = try GuardedServer()
    let now = Int64(Date().timeIntervalSince1970)
    let old = guarded.bearer("alice", ["iat": .integer(now - 60)])
    let new = guarded.bearer("alice", ["iat": .integer(now + 5)])
    let other = guarded.bearer("bob", ["iat": .integer(now - 60)])
    for headers in [old, new, other] { #expect(try status(guarded, headers) == 200) }
    let begun = try guarded.client.send("POST", "/v1/session", old)
    let cookie = String(try #require(begun["Set-Cookie"]?.split(separator: ";").first))
    let streams = try [old, new, other].map { try guarded.client.stream("/v1/streams", $0) }
    for stream in streams { _ = try first("open", of: stream) }
    let made = try guarded.client.send("PUT", Self.target + "/alice", guarded.admin)
    #expect(made.status == 201 && made.json["sub"].text == "alice" && made.json["before"].text?.hasSuffix("Z") == true)
    let refused = try guarded.client.send("GET", "/v1/entities", old)
    #expect(refused.status == 401 && refused.problem == "unauthenticated")
    #expect(refused["WWW-Authenticate"] == #"Bearer error="invalid_token""#)
    #expect(try status(guarded, ["Cookie": cookie]) == 401)
    #expect(try status(guarded, new) == 200)
    #expect(try status(guarded, other) == 200)
    let bye = try streams[0].rest().last
    #expect(bye?.name == "bye" && bye?.json["reason"].text == "expired")
    let isForgotten = try Deadline().awaits {
      try guarded.client.send("GET", "/v1/streams", guarded.admin).json["streams"].items.count == 2
    }
    #expect(isForgotten)
    #expect(try guarded.client.send("DELETE", Self.target + "/alice", guarded.admin).status == 204)
    #expect(try status(guarded, old) == 200)
  }

  @Test("Any sub of a token can be revoked, and an impossible one is refused with the reason")
  func longestSubject() throws {
    let guarded = try GuardedServer()
    let longest = String(repeating: "/", count: 1_024)
    let headers = guarded.bearer(longest, ["iat": .integer(Int64(Date().timeIntervalSince1970) - 60)])
    #expect(try status(guarded, headers) == 200)
    let path = Self.target + "/" + String(repeating: "%2F", count: 1_024)
    #expect(try guarded.client.send("PUT", path, guarded.admin).status == 201)
    #expect(try status(guarded, headers) == 401)
    let refused = try guarded.client.send("GET", "/v1/entities", guarded.bearer(longest + "/"))
    #expect(refused.status == 401 && refused.json["detail"].text?.contains("1024 bytes") == true, "\(refused.text)")
    #expect(try guarded.client.send("PUT", path + "%2F", guarded.admin).problem == "invalid-value")
  }

  @Test("A token without iat is refused while its sub has a revocation")
  func withoutTime() throws {
    let guarded = try GuardedServer()
    let token = guarded.key.token(["sub": .string("alice"), "exp": .integer(4_000_000_000)])
    let headers = ["Authorization": "Bearer \(token)"]
    #expect(try status(guarded, headers) == 200)
    let body = #"{"before":"1970-01-01T00:00:00Z"}"#
    try guarded.client.must("PUT", Self.target + "/alice", guarded.admin, body: body)
    #expect(try status(guarded, headers) == 401)
    #expect(try status(guarded, guarded.bearer("alice")) == 200)
    try guarded.client.must("DELETE", Self.target + "/alice", guarded.admin)
    #expect(try status(guarded, headers) == 200)
  }

  @Test("Revocations are listed, returned, replaced and removed; a malformed one changes nothing")
  func resources() throws {
    let guarded = try GuardedServer { $0.access.revocations = 3 }
    let admin = guarded.admin
    func send(_ method: String, _ sub: String, _ body: String? = nil) throws -> WireResponse {
      try guarded.client.send(method, "\(Self.target)/\(sub)", admin, body: body)
    }
    let awkward = "a/b c?\u{e4}%"
    let encoded = try #require(awkward.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
    #expect(try send("PUT", encoded, #"{"before":"2026-03-01T10:30:00.0001+01:00"}"#).status == 201)
    #expect(try send("GET", encoded).json["sub"].text == awkward)
    #expect(try send("GET", encoded).json["before"].text == "2026-03-01T09:30:00.001Z")
    let replaced = try send("PUT", encoded, #"{"before":"2025-01-01T00:00:00Z"}"#)
    #expect(replaced.status == 200 && replaced.json["before"].text == "2025-01-01T00:00:00.000Z")
    let wrong: [(body: String, status: Int)] = [
      (#"{"before":"yesterday"}"#, 422), (#"{"before":"2026-03-01"}"#, 422), (#"{"before":5}"#, 422),
      (#"{"until":"2026-03-01T09:30:00Z"}"#, 422), ("[]", 422), ("{", 400),
    ]
    for (body, status) in wrong { #expect(try send("PUT", "zoe", body).status == status, "\(body)") }
    #expect(try send("PUT", String(repeating: "x", count: 1025)).problem == "invalid-value")
    #expect(try send("GET", "zoe").problem == "not-found")
    #expect(try send("DELETE", "zoe").problem == "not-found")
    #expect(try send("PUT", "bob", "{}").status == 201)
    #expect(try send("PUT", "Bob").status == 201)
    let full = try send("PUT", "one-more")
    #expect(full.status == 503 && full.problem == "overloaded" && full["Retry-After"] != nil)
    #expect(try send("PUT", "bob").status == 200)
    let list = try guarded.client.send("GET", Self.target, admin)
    #expect(list.json["revocations"].items.compactMap { $0["sub"].text } == ["Bob", awkward, "bob"])
    #expect(try guarded.client.send("GET", Self.target + "?limit=1", admin).problem == "malformed-query")
    for (headers, status) in [([:], 401), (guarded.reader, 403)] {
      for method in ["GET", "PUT", "DELETE"] {
        #expect(try guarded.client.send(method, Self.target + "/bob", headers).status == status)
      }
      #expect(try guarded.client.send("GET", Self.target, headers).status == status)
    }
    #expect(try send("GET", "bob").status == 200)
  }

  @Test("They are there again after a restart, and after the end of a process that had no time to stop")
  func restarts() throws {
    let folder = try ScratchDirectory()
    let identity = JournalIdentity(epoch: "revoke", schema: "")
    func journal(_ name: String) throws -> SQLiteJournal {
      try SQLiteJournal(directory: "\(folder.path)/\(name)", durability: .synced) { identity }
    }
    func subjects(_ name: String) throws -> [String] {
      let server = try TestServer(objects: [], journal: try journal(name))
      return try server.client.json(Self.target)["revocations"].items.compactMap { $0["sub"].text }
    }
    do {
      let server = try TestServer(journal: try journal("a"))
      for sub in ["carol", "alice", "bob"] { try server.client.must("PUT", "\(Self.target)/\(sub)") }
      try server.client.must("DELETE", Self.target + "/bob")
      try FileManager.default.copyItem(atPath: "\(folder.path)/a", toPath: "\(folder.path)/killed")
    }
    #expect(try subjects("killed") == ["alice", "carol"])
    #expect(try subjects("a") == ["alice", "carol"])
  }

  @Test("A node that follows waits for records, and not where it lacks a revocation")
  func followers() throws {
    let server = try TestServer { $0.cluster.followers = true }
    try server.client.must("PUT", Self.target + "/alice")
    let store = server.server.store
    func connect() throws -> WireConnection {
      try WireConnection(SocketAddress(port: server.server.port))
    }
    func poll(_ connection: WireConnection, knowing revocations: UInt64) throws {
      let digest = try #require(try store.journal.digest(at: store.revision))
      let place = "epoch=\(store.epoch)&after=\(store.revision)&digest=\(String(digest.value, radix: 16))"
      let known = ["Keyway-Revocations": String(revocations, radix: 16)]
      try connection.send(WireRequest("GET", "/v1/nodes/records?\(place)&node=http%3A%2F%2Fx", known))
    }
    func batch(_ connection: WireConnection, after revision: Revision) throws -> RecordBatch {
      let digest = try #require(try store.journal.digest(at: revision))
      return try RecordBatch(connection.response().body, after: revision, digest)
    }
    let none = JournalDigest.start.value
    let (lacking, even) = (try connect(), try connect())
    // The first request of a node gets all revocations.
    try poll(even, knowing: none)
    let known = try batch(even, after: store.revision).revocations.value
    #expect(known != none)
    // The node that lacks nothing still waits when the other has its response. Two seconds may be too short for that.
    let waits = try (0..<5).contains { number in
      let revision = store.revision
      try poll(even, knowing: known)
      try poll(lacking, knowing: none)
      guard try batch(lacking, after: revision).revocations.value == known else { return false }
      try server.set("Account/1/balance", "\(number)")
      return try batch(even, after: revision).records.count == 1
    }
    #expect(waits)
  }

  @Test("A revocation that the disk refuses has no effect")
  func faults() throws {
    let journal = FaultyJournal()
    let server = try TestServer(objects: [], journal: journal)
    try server.client.must("PUT", Self.target + "/alice")
    journal.faults.withLock { $0.append = .refused("the disk is full") }
    for (method, sub) in [("PUT", "bob"), ("DELETE", "alice")] {
      let response = try server.client.send(method, "\(Self.target)/\(sub)")
      #expect(response.status == 503 && response.problem == "store-unavailable")
    }
    #expect(try server.client.json(Self.target)["revocations"].items.compactMap { $0["sub"].text } == ["alice"])
  }

  @Test("Tokens are refused exactly as a list of revocations says, whatever comes and goes")
  func randomly() throws {
    var random = SplitMix64(seed: seed)
    let guarded = try GuardedServer()
    // The two forms of one letter make two names.
    let subjects = ["a", "b", "\u{e4}", "a\u{308}"]
    let start = Int64(1_700_000_000)
    var oracle: [[UInt8]: Int64] = [:]
    for _ in 0..<150 {
      let sub = subjects.randomElement(using: &random) ?? ""
      let key = Array(sub.utf8)
      let encoded = sub.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      let time = start + Int64.random(in: 0...5, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0:
        let date = Date(timeIntervalSince1970: Double(time)).ISO8601Format()
        try guarded.client.must(
          "PUT", "\(Self.target)/\(encoded)", guarded.admin, body: #"{"before":"\#(date)"}"#)
        oracle[key] = time
      case 1:
        let response = try guarded.client.send("DELETE", "\(Self.target)/\(encoded)", guarded.admin)
        #expect(response.status == (oracle.removeValue(forKey: key) == nil ? 404 : 204), "seed \(seed)")
      default:
        let hasTime = Bool.random(using: &random)
        var claims: JSONObject = ["sub": .string(sub), "exp": .integer(4_000_000_000)]
        if hasTime { claims["iat"] = .integer(time) }
        let isRefused = oracle[key].map { !hasTime || time < $0 } ?? false
        let headers = ["Authorization": "Bearer \(guarded.key.token(claims))"]
        #expect(try status(guarded, headers) == (isRefused ? 401 : 200), "seed \(seed)")
      }
    }
  }
}
