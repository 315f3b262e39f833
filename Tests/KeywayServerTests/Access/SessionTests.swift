import Foundation
import HTTPServer
import KeyValueModel
import KeywayServer
import Store
import Support
import TestKit
import Testing

/// Sessions, and pages of other origins.
@Suite("Sessions and origins") struct SessionTests {
  private static let listed = "https://app.example.org"

  /// Returns the cookie of a session, as a browser sends it.
  private func cookie(_ response: WireResponse) throws -> String {
    String(try #require(response["Set-Cookie"]?.split(separator: ";").first))
  }

  /// Returns the status of a request that needs an identity.
  private func status(_ server: WireClient, _ cookie: String) throws -> Int {
    try server.send("GET", "/v1/entities", ["Cookie": cookie]).status
  }

  @Test("A session has its token's identity until it is ended; the header wins over it")
  func life() throws {
    let guarded = try GuardedServer()
    let begun = try guarded.client.send("POST", "/v1/session", guarded.admin)
    #expect(begun.status == 204 && begun["Keyway-Cursor"] == guarded.cursor)
    let attributes = try #require(begun["Set-Cookie"])
    for part in ["keyway_session=", "; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age="] {
      #expect(attributes.contains(part), "\(attributes)")
    }
    #expect(!attributes.contains("Secure"))
    let session = try cookie(begun)
    #expect(session.utf8.count == "keyway_session=".utf8.count + 43)
    let mine = try guarded.client.send("GET", "/v1/session", ["Cookie": "a=b; \(session)"])
    #expect(mine.json["identity"]["sub"].text == "root" && mine.json["expires"].text?.hasSuffix("Z") == true)
    let stream = try guarded.client.stream("/v1/objects/Account/1/balance", ["Cookie": session])
    _ = try first("change", of: stream)
    let other = try guarded.client.stream(
      "/v1/objects/Account/1/balance", ["Cookie": session].merging(guarded.admin) { $1 })
    _ = try first("change", of: other)
    let header = try guarded.client.send(
      "GET", "/v1/session", ["Cookie": session, "Authorization": guarded.reader["Authorization"] ?? ""])
    #expect(header.json["identity"]["sub"].text == "alice")
    let ended = try guarded.client.send("DELETE", "/v1/session", ["Cookie": session])
    #expect(ended.status == 204 && ended["Set-Cookie"]?.contains("Max-Age=0") == true)
    #expect(try status(guarded.client, session) == 401)
    #expect(try guarded.client.send("GET", "/v1/session", ["Cookie": session]).json["identity"].isNull)
    let again = try guarded.client.send("DELETE", "/v1/session", ["Cookie": session])
    #expect(again.status == 204 && again["Set-Cookie"]?.contains("Max-Age=0") == true)
    #expect(again["Keyway-Cursor"] == ended["Keyway-Cursor"])
    #expect(try guarded.client.send("GET", "/v1/objects/Account/1", guarded.admin).status == 200)
    // A stream opened with the cookie ends with the session; one opened with the header continues.
    let bye = try stream.rest().last
    #expect(bye?.name == "bye" && bye?.json["reason"].text == "expired")
    try guarded.client.must("PUT", "/v1/objects/Account/1/balance", guarded.admin, body: "7")
    #expect(try first("change", of: other).changes.first?["new"].whole == 7)
    #expect(try guarded.client.send("GET", "/v1/session").json["identity"].isNull)
    #expect(try guarded.client.send("POST", "/v1/session").status == 401)
  }

  @Test("A value that the server did not issue is not a session, a token or the end of one among them")
  func unissued() throws {
    let guarded = try GuardedServer()
    let token = guarded.token("root", roles: ["keyway-admin"])
    let session = try cookie(try guarded.client.must("POST", "/v1/session", guarded.admin))
    let before = guarded.cursor
    let value = String(try #require(session.split(separator: "=").last))
    for other in [token, "x.\(token)", "\(value).\(token)", "\(value)A", "", "x", SessionSecret().text] {
      let header = ["Cookie": "keyway_session=\(other)"]
      #expect(try status(guarded.client, header["Cookie"] ?? "") == 401, "\(other)")
      // Routes that do not depend on the identity answer as without one.
      let answer = try guarded.client.send("GET", "/v1/session", header)
      #expect(answer.status == 200 && answer.json["identity"].isNull)
      #expect(try guarded.client.send("GET", "/healthz", header).status == 200)
      #expect(try guarded.client.send("POST", "/v1/session", header).status == 401)
      #expect(try guarded.client.send("DELETE", "/v1/session", header).status == 204)
    }
    #expect(try status(guarded.client, session) == 200 && guarded.cursor == before)
    // The secret is valid only in the cookie.
    for credential in [value, "Bearer \(value)"] {
      #expect(try guarded.client.send("GET", "/v1/entities", ["Authorization": credential]).status == 401)
    }
  }

  @Test("Cookies are separated by semicolons alone, and two session cookies of either name are 400")
  func cookies() throws {
    let guarded = try GuardedServer()
    let session = try cookie(try guarded.client.must("POST", "/v1/session", guarded.admin))
    let value = try #require(session.split(separator: "=").last)
    #expect(try status(guarded.client, "a=b;  \(session) ;c") == 200)
    #expect(try status(guarded.client, "a=b, \(session)") == 401)
    #expect(try status(guarded.client, "a=\(session)") == 401)
    #expect(try status(guarded.client, "Keyway_session=\(value)") == 401)
    for second in ["keyway_session=x", "__Host-keyway_session=\(value)", session] {
      let answer = try guarded.client.send("GET", "/v1/entities", ["Cookie": "\(session); \(second)"])
      #expect(answer.status == 400 && answer.problem == "malformed-request", "\(second)")
      #expect(try guarded.client.send("GET", "/v1/session", ["Cookie": "\(second); \(session)"]).status == 400)
    }
  }

  @Test("Over TLS the cookie has the prefix __Host-, and one without it is not a session")
  func prefix() throws {
    let guarded = try GuardedServer { $0.access.proxies = ["127.0.0.1"] }
    let secure = ["X-Forwarded-Proto": "https"]
    let begun = try guarded.client.send("POST", "/v1/session", guarded.admin.merging(secure) { $1 })
    let attributes = try #require(begun["Set-Cookie"])
    #expect(attributes.hasPrefix("__Host-keyway_session=") && attributes.contains("; Path=/;"))
    #expect(attributes.hasSuffix("; Secure") && !attributes.contains("Domain"))
    let session = try cookie(begun)
    func status(_ cookie: String) throws -> Int {
      try guarded.client.send("GET", "/v1/entities", secure.merging(["Cookie": cookie]) { $1 }).status
    }
    #expect(try status(session) == 200)
    #expect(try status(String(session.dropFirst("__Host-".count))) == 401)
    let plain = try cookie(try guarded.client.must("POST", "/v1/session", guarded.admin))
    #expect(try status(plain) == 401 && self.status(guarded.client, plain) == 200)
    // A page of another origin may use neither.
    let foreign = ["Cookie": session, "Origin": "https://evil.example"].merging(secure) { $1 }
    #expect(try guarded.client.send("PUT", "/v1/objects/Account/1/balance", foreign, body: "1").status == 403)
    let ended = try guarded.client.send("DELETE", "/v1/session", secure.merging(["Cookie": session]) { $1 })
    #expect(ended["Set-Cookie"]?.hasPrefix("__Host-keyway_session=;") == true)
    #expect(try status(session) == 401)
  }

  @Test("A session ends with its token: by expiry, by a revocation, and with the key")
  func token() throws {
    let guarded = try GuardedServer { $0.access.leewaySeconds = 0 }
    func begin(_ headers: [String: String]) throws -> String {
      try cookie(try guarded.client.must("POST", "/v1/session", headers))
    }
    let short = try begin(guarded.bearer("short", for: 2))
    #expect(try status(guarded.client, short) == 200)
    #expect(Deadline().awaits { (try? status(guarded.client, short)) == 401 })
    let alice = try begin(guarded.reader)
    let target = "/v1/access/revocations/alice"
    let stream = try guarded.client.stream("/v1/streams", ["Cookie": alice])
    try guarded.client.must("PUT", target, guarded.admin, body: #"{"before":"2100-01-01T00:00:00Z"}"#)
    #expect(try status(guarded.client, alice) == 401)
    #expect(try stream.rest().last?.name == "bye")
    try guarded.client.must("DELETE", target, guarded.admin)
    #expect(try status(guarded.client, alice) == 200)
    try DevelopmentKey.makeSet().write(toFile: guarded.path, atomically: true, encoding: .utf8)
    guarded.server.server.reloadKeys()
    #expect(try status(guarded.client, alice) == 401)
  }

  @Test("One identity's sessions end its own oldest, and one more than all bytes is 503")
  func shares() throws {
    let guarded = try GuardedServer {
      $0.access.sessions.perIdentity = 2
      $0.access.sessions.bytes = 1_600
    }
    func begin(_ headers: [String: String]) throws -> String {
      try cookie(try guarded.client.must("POST", "/v1/session", headers))
    }
    let other = try begin(guarded.reader)
    let mine = try (0..<3).map { _ in try begin(guarded.admin) }
    #expect(try mine.map { try status(guarded.client, $0) } == [401, 200, 200])
    #expect(try status(guarded.client, other) == 200)
    let refused = try guarded.client.send("POST", "/v1/session", guarded.bearer("third"))
    #expect(refused.status == 503 && refused.problem == "overloaded" && refused["Set-Cookie"] == nil)
    _ = try guarded.client.must("DELETE", "/v1/session", ["Cookie": mine[2]])
    _ = try begin(guarded.bearer("third"))
  }

  @Test("Sessions go on after a restart, and ended ones stay ended, also where the records of both are gone")
  func restart() throws {
    let folder = try ScratchDirectory()
    let keys = try GuardedServer()
    func open() throws -> TestServer {
      try TestServer(
        objects: [],
        journal: SQLiteJournal(directory: folder.file("store"), durability: .synced) {
          JournalIdentity(epoch: "sessions", schema: Fixture.schema)
        }
      ) {
        $0.access.keys = keys.path
        ($0.store.historyRevisions, $0.store.snapshotRevisions) = (5, 20)
      }
    }
    var sessions: [String] = []
    func check(_ server: TestServer) throws {
      #expect(try sessions.map { try status(server.client, $0) } == [401, 200, 200])
    }
    do {
      let server = try open()
      for _ in 0..<3 { sessions.append(try cookie(try server.client.must("POST", "/v1/session", keys.admin))) }
      let before = server.server.store.revision
      let ended = try server.client.send("DELETE", "/v1/session", ["Cookie": sessions[0]])
      #expect(ended.status == 204 && ended["Keyway-Cursor"] == "sessions-\(before + 1)")
      try check(server)
    }
    for _ in 0..<2 {
      let server = try open()
      try check(server)
      let journal = server.server.store.journal
      let last = journal.bounds.last
      let deadline = Deadline()
      while journal.bounds.base < last, !deadline.hasPassed {
        try server.client.must("PUT", "/v1/objects/Note/1", keys.admin, body: "{}")
      }
      #expect(journal.bounds.base >= last)
      try check(server)
    }
    let server = try open()
    try check(server)
    // The journal that admins read does not contain the sessions.
    let lines = try server.client.must("GET", "/v1/journal", keys.admin).text
    #expect(!lines.contains("keyway-admin"))
  }

  @Test("A store that keeps the ends of sessions of an earlier version opens, and the journal with it")
  func earlierVersion() throws {
    // A session of alice that had ended: the form, the mark of its owner, two times, and its name.
    let former: [UInt8] = [7] + Array(repeating: 1, count: 16) + Array(repeating: 0x7F, count: 16) + Array("ab12".utf8)
    let journal = MemoryJournal(identity: JournalIdentity(epoch: "former", schema: ""))
    var body: [UInt8] = []
    Transaction([]).appendJournalText(to: &body)
    body += [UInt8(ascii: "\n")] + former
    try journal.append([JournalRecord(revision: 1, milliseconds: 1, body: body)], after: 0)
    let guarded = try GuardedServer(journal: journal, objects: [])
    #expect(guarded.server.server.store.revision == 1)
    let session = try cookie(try guarded.client.must("POST", "/v1/session", guarded.admin))
    #expect(try status(guarded.client, session) == 200)
  }

  @Test("If the store refuses the commit, a session ends on this node, and the response says that others may accept it")
  func withoutCommit() throws {
    let journal = FaultyJournal(MemoryJournal(identity: JournalIdentity(epoch: "faulty", schema: "")))
    let guarded = try GuardedServer(journal: journal)
    let session = try cookie(try guarded.client.send("POST", "/v1/session", guarded.admin))
    journal.faults.withLock { $0.append = .refused("the disk is full") }
    let ended = try guarded.client.send("DELETE", "/v1/session", ["Cookie": session])
    #expect(ended.status == 503 && ended.problem == "store-unavailable")
    #expect(ended["Set-Cookie"]?.contains("Max-Age=0") == true)
    #expect(try status(guarded.client, session) == 401)
    let refused = try guarded.client.send("POST", "/v1/session", guarded.admin)
    #expect(refused.status == 503 && refused.problem == "store-unavailable" && refused["Set-Cookie"] == nil)
  }

  @Test("The cookie is for secure connections where the server goes by a name of the network")
  func secure() throws {
    let guarded = try GuardedServer { $0.names = ["*.example.org"] }
    var headers = guarded.admin
    for (host, isSecure) in [("data.example.org", true), ("127.example.org", true), ("127.0.0.1", false)] {
      headers["Host"] = host
      let cookie = try guarded.client.send("POST", "/v1/session", headers)["Set-Cookie"]
      #expect(cookie?.contains("; Secure") == isSecure, "\(host)")
    }
    headers["Host"] = "example.org"
    #expect(try guarded.client.send("POST", "/v1/session", headers).status == 421)
  }

  @Test("A page of a listed origin may call and read; one of another may do neither")
  func origins() throws {
    let guarded = try GuardedServer { $0.access.origins = [Self.listed] }
    let session = try cookie(try guarded.client.send("POST", "/v1/session", guarded.admin))
    let port = guarded.client.port
    let own = "http://127.0.0.1:\(port)"
    let cases: [(origin: String, isListed: Bool, mayWrite: Bool)] = [
      (Self.listed, true, true), (own, false, true), ("https://evil.example", false, false), ("null", false, false),
      ("http://app.example.org", false, false), ("https://app.example.org:8443", false, false),
      ("http://127.0.0.1:\(port + 1)", false, false), ("http://127.0.0.1", false, false),
    ]
    for (origin, isListed, mayWrite) in cases {
      let headers = ["Cookie": session, "Origin": origin]
      let read = try guarded.client.send("GET", "/v1/objects/Account/1/balance", headers)
      #expect(read.status == 200 && read["Vary"] == "Accept, Origin")
      #expect(read["Access-Control-Allow-Origin"] == (isListed ? origin : nil), "\(origin)")
      #expect(read["Access-Control-Allow-Credentials"] == (isListed ? "true" : nil))
      if isListed {
        #expect(read["Access-Control-Expose-Headers"] == "ETag, Keyway-Cursor, Link, Location, Retry-After")
      }
      let write = try guarded.client.send("PUT", "/v1/objects/Account/1/balance", headers, body: "5")
      #expect(write.status == (mayWrite ? 200 : 403), "\(origin)")
      var preflight = ["Origin": origin, "Access-Control-Request-Method": "PUT"]
      preflight["Access-Control-Request-Headers"] = "authorization,content-type"
      let answer = try guarded.client.send("OPTIONS", "/v1/objects/Account/1", preflight)
      #expect(answer.status == 204)
      #expect(answer["Access-Control-Allow-Origin"] == (isListed ? origin : nil))
      #expect((answer["Access-Control-Allow-Methods"]?.contains("PUT") ?? false) == isListed)
      // Each header of a request that the specification knows.
      for field in [
        "Authorization", "Content-Type", "Accept", "If-Match", "If-None-Match", "Last-Event-ID", "Keyway-Writer",
        "Keyway-Lifetime", "Keyway-Cursor", "Idempotency-Key", "X-Request-Id", "Cache-Control",
      ] {
        #expect((answer["Access-Control-Allow-Headers"]?.contains(field) ?? false) == isListed, "\(field)")
      }
      // A problem can be read as well, and a token in the header needs no origin.
      let problem = try guarded.client.send("GET", "/v1/objects/Account/99", headers)
      #expect((problem["Access-Control-Allow-Origin"] != nil) == isListed)
      var bearer = guarded.admin
      bearer["Origin"] = origin
      #expect(try guarded.client.send("PUT", "/v1/objects/Account/1/balance", bearer, body: "6").status == 200)
      let stream = try guarded.client.stream("/v1/objects/Account/1/balance", headers)
      #expect((stream.head["Access-Control-Allow-Origin"] != nil) == isListed)
    }
  }

  @Test("An origin with the default port of its scheme is the origin that browsers send")
  func defaultPorts() throws {
    let guarded = try GuardedServer {
      $0.access.origins = ["https://App.example.org:443", "http://[::1]:80", "http://localhost:3000"]
    }
    for (origin, isListed) in [
      ("https://app.example.org", true), ("http://[::1]", true), ("http://localhost:3000", true),
      ("http://app.example.org", false), ("http://localhost", false),
    ] {
      let read = try guarded.client.send("GET", "/v1/objects/Account", ["Origin": origin])
      #expect(read["Access-Control-Allow-Origin"] == (isListed ? origin : nil), "\(origin)")
    }
  }

  @Test("Without keys nothing is asked, and there is no session")
  func withoutKeys() throws {
    let server = try TestServer()
    let answer = try server.client.send("GET", "/v1/objects/Account/1", ["Authorization": "Bearer x"])
    #expect(answer.status == 200 && answer["Vary"] == "Accept")
    #expect(try server.client.send("POST", "/v1/session", ["Authorization": "Bearer x"]).status == 401)
    #expect(try server.client.send("GET", "/v1/session").json["identity"].isNull)
  }
}
