import Foundation
import HTTPServer
import Journal
import JournalTesting
import KeyValueModel
import KeywayAPI
import Locking
import LoopbackKit
import ModelStore
import Testing

/// Sessions, and pages of other origins.
@Suite("Sessions and origins") struct SessionTests {
  private static let listed = "https://app.example.org"

  /// The cookie that a session gave, as a browser sends it.
  private func cookie(_ response: WireResponse) throws -> String {
    String(try #require(response["Set-Cookie"]?.split(separator: ";").first))
  }

  @Test("A cookie stands for its token until it is ended; the header wins over it")
  func life() throws {
    let guarded = try GuardedServer()
    let begun = try guarded.client.send("POST", "/v1/session", guarded.admin)
    #expect(begun.status == 204)
    let attributes = try #require(begun["Set-Cookie"])
    for part in ["keyway_session=", "; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age="] {
      #expect(attributes.contains(part), "\(attributes)")
    }
    #expect(!attributes.contains("Secure"))
    let session = try cookie(begun)
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
    #expect(try guarded.client.send("GET", "/v1/objects/Account/1", ["Cookie": session]).status == 401)
    let again = try guarded.client.send("DELETE", "/v1/session", ["Cookie": session])
    #expect(again.status == 204 && again["Set-Cookie"]?.contains("Max-Age=0") == true)
    #expect(try guarded.client.send("GET", "/v1/objects/Account/1", guarded.admin).status == 200)
    // What the cookie has opened ends with it, and what the header has goes on.
    let bye = try stream.rest().last
    #expect(bye?.name == "bye" && bye?.json["reason"].text == "expired")
    try guarded.client.must("PUT", "/v1/objects/Account/1/balance", guarded.admin, body: "7")
    #expect(try first("change", of: other).changes.first?["new"].whole == 7)
    #expect(try guarded.client.send("GET", "/v1/session").json["identity"].isNull)
    #expect(try guarded.client.send("POST", "/v1/session").status == 401)
    #expect(try guarded.client.send("GET", "/v1/session", ["Cookie": "keyway_session=a.b.c.d"]).status == 401)
  }

  @Test("No session that was ended comes back, however many its owner ends; one of a newer token is good")
  func manyEnds() throws {
    let guarded = try GuardedServer { $0.access.endedSessions = 2_000 }
    func begin(_ headers: [String: String]) throws -> String {
      try cookie(try guarded.client.must("POST", "/v1/session", headers))
    }
    func status(_ session: String) throws -> Int {
      try guarded.client.send("GET", "/v1/objects/Account/1", ["Cookie": session]).status
    }
    let other = try begin(guarded.bearer("bob", roles: ["keyway-admin"]))
    var sessions: [String] = []
    for count in 1...5 {
      let session = try begin(guarded.admin)
      // Of one owner, two are remembered by their names; the third ends all.
      if count <= 3 { #expect(try status(session) == 200) }
      let ended = try guarded.client.send("DELETE", "/v1/session", ["Cookie": session])
      #expect(ended.status == 204)
      sessions.append(session)
      #expect(try sessions.allSatisfy { try status($0) == 401 })
    }
    #expect(try status(other) == 200)
    let soon = Int64(Date().timeIntervalSince1970) + 5
    let later = guarded.token("root", roles: ["keyway-admin"], ["iat": .integer(soon)])
    #expect(try status(try begin(["Authorization": "Bearer \(later)"])) == 200)
  }

  @Test("An ended session stays ended after a restart, also where the records of its end are gone", arguments: [1, 5])
  func restart(_ ends: Int) throws {
    let folder = try ScratchDirectory()
    var path = ""
    func open() throws -> TestServer {
      try TestServer(
        objects: [],
        journal: SQLiteJournal(directory: folder.file("store"), durability: .synced) {
          JournalIdentity(epoch: "sessions", schema: Fixture.schema)
        }
      ) {
        $0.access.keys = path
        // Two are remembered by their names.
        $0.access.endedSessions = 2_000
        ($0.store.historyRevisions, $0.store.snapshotRevisions) = (5, 20)
      }
    }
    let keys = try GuardedServer()
    path = keys.path
    let admin = keys.admin
    var sessions: [String] = []
    var other = ""
    func check(_ server: TestServer) throws {
      func status(_ session: String) throws -> Int {
        try server.client.send("GET", "/v1/objects/Note", ["Cookie": session]).status
      }
      #expect(try sessions.map(status) == sessions.map { _ in 401 })
      #expect(try status(other) == 200)
    }
    do {
      let server = try open()
      other = try cookie(try server.client.send("POST", "/v1/session", keys.bearer("else", roles: ["keyway-admin"])))
      for _ in 0..<ends { sessions.append(try cookie(try server.client.send("POST", "/v1/session", admin))) }
      let before = server.server.store.revision
      let ended = try server.client.send("DELETE", "/v1/session", ["Cookie": sessions[0]])
      #expect(ended.status == 204 && ended["Keyway-Cursor"] == "sessions-\(before + 1)")
      for session in sessions[1...] { try server.client.send("DELETE", "/v1/session", ["Cookie": session]) }
      try check(server)
    }
    for _ in 0..<2 {
      let server = try open()
      try check(server)
      let journal = server.server.store.journal
      let last = journal.bounds.last
      let deadline = Deadline()
      while journal.bounds.base < last, !deadline.hasPassed {
        try server.client.must("PUT", "/v1/objects/Note/1", admin, body: "{}")
      }
      #expect(journal.bounds.base >= last)
      try check(server)
    }
    try check(try open())
  }

  @Test("Where the store takes no commit, a session has ended here, and the answer says that it may be good elsewhere")
  func withoutCommit() throws {
    let journal = FaultyJournal(MemoryJournal(identity: JournalIdentity(epoch: "faulty", schema: "")))
    let guarded = try GuardedServer(journal: journal)
    let session = try cookie(try guarded.client.send("POST", "/v1/session", guarded.admin))
    journal.faults.withLock { $0.append = .refused("the disk is full") }
    let ended = try guarded.client.send("DELETE", "/v1/session", ["Cookie": session])
    #expect(ended.status == 503 && ended.problem == "store-unavailable")
    #expect(ended["Set-Cookie"]?.contains("Max-Age=0") == true)
    #expect(try guarded.client.send("GET", "/v1/objects/Account/1", ["Cookie": session]).status == 401)
  }

  @Test("The cookie is for secure connections where the server goes by a name of the network")
  func secure() throws {
    let guarded = try GuardedServer { $0.names = ["*.example.org"] }
    var headers = guarded.admin
    headers["Host"] = "data.example.org"
    #expect(try guarded.client.send("POST", "/v1/session", headers)["Set-Cookie"]?.contains("; Secure") == true)
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
        #expect(read["Access-Control-Expose-Headers"] == "ETag, Keyway-Cursor, Location, Retry-After")
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
        "Keyway-Lifetime", "Keyway-Cursor", "Idempotency-Key", "X-Request-Id",
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

  @Test("Without keys nothing is asked, and there is no session")
  func withoutKeys() throws {
    let server = try TestServer()
    let answer = try server.client.send("GET", "/v1/objects/Account/1", ["Authorization": "Bearer x"])
    #expect(answer.status == 200 && answer["Vary"] == "Accept")
    #expect(try server.client.send("POST", "/v1/session", ["Authorization": "Bearer x"]).status == 401)
    #expect(try server.client.send("GET", "/v1/session").json["identity"].isNull)
  }
}
