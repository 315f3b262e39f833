import Cluster
import Foundation
import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

/// Signing in with the name and the password of an account.
@Suite("Signing in") struct SignInTests {
  private static let accounts = "/v1/access/accounts"
  private static let schema = """
    access: { read: identity != null, create: 'identity != null', update: 'identity != null', delete: 'false' }
    entities: { Note: { keys: { text: { type: string } } } }
    """

  private static func guarded(
    journal: (any TransactionJournal)? = nil, _ configure: (inout KeywayServer.Configuration) -> Void = { _ in }
  ) throws -> GuardedServer {
    try GuardedServer(journal: journal, schema: schema, objects: []) {
      $0.access.accounts = true
      $0.access.accountPrefix = "account:"
      $0.access.passwordCost = PasswordHash.Cost(logarithm: 4, blockSize: 8, parallelism: 1)
      configure(&$0)
    }
  }

  private static func credentials(_ name: String, _ password: String, _ more: String = "") -> String {
    #"{"name":"\#(name)","password":"\#(password)"\#(more)}"#
  }

  private func signIn(
    _ server: GuardedServer, _ name: String, _ password: String, _ more: String = "", _ headers: [String: String] = [:]
  ) throws -> WireResponse {
    try server.client.send("POST", "/v1/session", headers, body: Self.credentials(name, password, more))
  }

  /// Returns the cookie of a session, as a browser sends it.
  private func cookie(_ response: WireResponse) throws -> [String: String] {
    ["Cookie": String(try #require(response["Set-Cookie"]?.split(separator: ";").first))]
  }

  private func make(_ server: GuardedServer, _ name: String, _ body: String) throws -> WireResponse {
    try server.client.send("PUT", "\(Self.accounts)/\(name)", server.admin, body: body)
  }

  /// Returns the number of passwords that a server has hashed.
  private func hashes(_ server: GuardedServer) throws -> Int {
    let page = try server.client.send("GET", "/metrics", server.admin).text
    let line = page.split(separator: "\n").first { $0.hasPrefix("keyway_password_hashes_total ") }
    return try #require(line.flatMap { Int($0.split(separator: " ")[1]) })
  }

  @Test("A name and its password give a cookie or a token, with the claims of the account; a restart keeps them")
  func life() throws {
    let folder = try ScratchDirectory()
    func journal() throws -> SQLiteJournal {
      try SQLiteJournal(directory: folder.path + "/store", durability: .synced) {
        JournalIdentity(epoch: "test", schema: "")
      }
    }
    let body = #"{"password":"correct horse","claims":{"roles":["manager"],"team":7}}"#
    let (cookie, bearer): ([String: String], [String: String])
    do {
      let server = try Self.guarded(journal: try journal())
      #expect(try make(server, "Ann", body).status == 201)
      let signedIn = try signIn(server, "ann", "correct horse")
      #expect(signedIn.status == 200 && signedIn["Cache-Control"] == "no-store", "\(signedIn.text)")
      #expect(signedIn.json["identity"].json == #"{"sub":"account:Ann","roles":["manager"],"team":7}"#)
      #expect(signedIn.json["expires"].text?.hasSuffix("Z") == true && signedIn.json["token"].isNull)
      cookie = try self.cookie(signedIn)
      let token = try signIn(server, "Ann", "correct horse", #","token":true"#)
      #expect(token.status == 200 && token["Set-Cookie"] == nil)
      bearer = ["Authorization": "Bearer \(try #require(token.json["token"].text))"]
      for headers in [cookie, bearer] {
        let mine = try server.client.send("GET", "/v1/session", headers)
        #expect(mine.json["identity"]["sub"].text == "account:Ann" && mine.json["expires"].text != nil)
        #expect(try server.client.send("PUT", "/v1/objects/Note/1", headers, body: "{}").status < 300)
      }
      #expect(try server.client.send("GET", "/v1/access/accounts", cookie).status == 403)
    }
    let server = try Self.guarded(journal: try journal())
    for headers in [cookie, bearer] {
      #expect(try server.client.send("GET", "/v1/objects/Note/1", headers).status == 200)
    }
    #expect(try signIn(server, "ANN", "correct horse").status == 200)
    #expect(try server.client.send("DELETE", "/v1/session", cookie).status == 204)
    #expect(try server.client.send("GET", "/v1/objects/Note/1", cookie).status == 401)
    #expect(try server.client.send("GET", "/v1/objects/Note/1", bearer).status == 200)
  }

  @Test("A wrong name and a wrong password are the same 401, and so is what no name can be")
  func wrong() throws {
    let server = try Self.guarded()
    #expect(try make(server, "ann", #"{"password":"correct horse"}"#).status == 201)
    let attempts = [("ann", "wrong horse"), ("nobody", "correct horse"), ("no such/name", "correct horse"), ("", "")]
    let answers = try attempts.map { name, password in
      let before = try hashes(server)
      let answer = try signIn(server, name, password)
      #expect(try hashes(server) == before + 1, "\(name): an unknown name takes as long as a wrong password")
      return answer
    }
    for answer in answers {
      #expect(answer.status == 401 && answer.problem == "unauthenticated" && answer["Set-Cookie"] == nil)
      #expect(answer["WWW-Authenticate"] == "Bearer" && answer.json["detail"].text == answers[0].json["detail"].text)
      #expect(!answer.text.contains("horse"))
    }
  }

  @Test("After ten failures with a name the address waits, with that name alone; success does not count")
  func limit() throws {
    let server = try Self.guarded()
    for name in ["ann", "bob"] { #expect(try make(server, name, #"{"password":"correct horse"}"#).status == 201) }
    for _ in 0..<12 { #expect(try signIn(server, "ann", "correct horse").status == 200) }
    for _ in 0..<10 { #expect(try signIn(server, "ann", "wrong horse").status == 401) }
    for password in ["wrong horse", "correct horse"] {
      let refused = try signIn(server, "Ann", password)
      #expect(refused.status == 429 && refused.problem == "too-many-requests")
      #expect(try #require(refused["Retry-After"].flatMap(Int.init)) > 30)
    }
    #expect(try signIn(server, "bob", "correct horse").status == 200)
    for _ in 0..<20 { _ = try signIn(server, "x\(Int.random(in: 0...1 << 40))", "wrong horse") }
    #expect(try signIn(server, "bob", "correct horse").status == 429)
  }

  @Test(
    "Another password, other claims and the removal of the account end its sessions and their streams",
    arguments: [#"{"password":"battery staple"}"#, #"{"claims":{"roles":[]}}"#, nil])
  func ending(_ change: String?) throws {
    let server = try Self.guarded()
    #expect(try make(server, "ann", #"{"password":"correct horse"}"#).status == 201)
    #expect(try make(server, "bob", #"{"password":"correct horse"}"#).status == 201)
    let mine = try cookie(try signIn(server, "ann", "correct horse"))
    let token = try signIn(server, "ann", "correct horse", #","token":true"#).json["token"].text
    let bearer = ["Authorization": "Bearer \(try #require(token))"]
    let other = try cookie(try signIn(server, "bob", "correct horse"))
    let streams = try [mine, bearer, other].map { try server.client.stream("/v1/streams", $0) }
    for stream in streams { _ = try first("open", of: stream) }
    if let change {
      #expect(try make(server, "ANN", change).status == 200)
    } else {
      #expect(try server.client.send("DELETE", "\(Self.accounts)/ann", server.admin).status == 204)
    }
    for (headers, status) in [(mine, 401), (bearer, 401), (other, 200)] {
      #expect(try server.client.send("GET", "/v1/entities", headers).status == status)
    }
    for stream in streams.prefix(2) {
      let bye = try stream.rest().last
      #expect(bye?.name == "bye" && bye?.json["reason"].text == "expired")
    }
    let isForgotten = try Deadline().awaits {
      try server.client.send("GET", "/v1/streams", server.admin).json["streams"].items.count == 1
    }
    #expect(isForgotten)
  }

  @Test("Accounts are made, listed, returned, changed and removed by admins, and never with a password")
  func resources() throws {
    let server = try Self.guarded()
    func send(_ method: String, _ name: String, _ body: String? = nil) throws -> WireResponse {
      try server.client.send(method, Self.accounts + name, server.admin, body: body)
    }
    #expect(try send("PUT", "/bob", #"{"password":"correct horse","claims":{"a":1}}"#).status == 201)
    let ann = try send("PUT", "/Ann", #"{"password":"correct horse"}"#)
    #expect(ann.status == 201 && ann.text == #"{"name":"Ann","claims":{}}"# + "\n")
    #expect(
      try send("GET", "").text
        == #"{"accounts":[{"name":"Ann","claims":{}},{"name":"bob","claims":{"a":1}}]}"# + "\n")
    #expect(try send("PUT", "/ANN", #"{"claims":{"b":2}}"#).text == #"{"name":"Ann","claims":{"b":2}}"# + "\n")
    #expect(try signIn(server, "ann", "correct horse").status == 200, "the password stays")
    #expect(try send("PUT", "/bob", #"{"password":"battery staple"}"#).json["claims"]["a"].whole == 1)
    let refused: [(String, String, String)] = [
      ("/new", "{}", "needs a password"), ("/new", #"{"password":"1234567"}"#, "fewer than 8"),
      ("/new", #"{"password":7}"#, "string"), ("/bob", #"{"claims":[]}"#, "object"),
      ("/bob", #"{"claims":{"sub":"x"}}"#, "'sub'"), ("/bob", #"{"claims":{"exp":1}}"#, "'exp'"),
      ("/bob", #"{"claims":{"iss":"x"}}"#, "'iss'"), ("/bob", #"{"pasword":"correct horse"}"#, "'pasword'"),
      ("/a%20b", #"{"password":"correct horse"}"#, "letters, digits"),
    ]
    for (name, body, reason) in refused {
      let response = try send("PUT", name, body)
      #expect(response.problem == "invalid-value" && response.json["detail"].text?.contains(reason) == true, "\(body)")
    }
    #expect(try send("DELETE", "/BOB").status == 204)
    for method in ["GET", "DELETE"] { #expect(try send(method, "/bob").problem == "not-found") }
    #expect(try server.client.send("GET", "/v1/journal", server.admin).text.contains("horse") == false)
  }

  @Test("A malformed sign-in is refused with the reason; a page gets no token")
  func malformed() throws {
    let server = try Self.guarded()
    for (body, reason) in [
      (#"{"name":"ann"}"#, "strings"), (#"{"name":1,"password":"correct horse"}"#, "strings"),
      (Self.credentials("ann", "x", #","token":1"#), "true or false"),
      (Self.credentials("ann", "x", #","user":1"#), "'user'"),
    ] {
      let response = try server.client.send("POST", "/v1/session", body: body)
      #expect(response.problem == "invalid-value" && response.json["detail"].text?.contains(reason) == true, "\(body)")
    }
    let page = try signIn(server, "ann", "x", #","token":true"#, ["Origin": "https://app.example.org"])
    #expect(page.status == 403 && page.problem == "forbidden")
  }

  @Test("Accounts alone turn access on, without a prefix; beside keys a prefix is required")
  func settings() throws {
    var configuration = KeywayServer.Configuration()
    configuration.access.accounts = true
    configuration.access.passwordCost = PasswordHash.Cost(logarithm: 4, blockSize: 8, parallelism: 1)
    let server = try TestServer(schema: Self.schema, objects: []) { $0.access = configuration.access }
    #expect(try server.client.send("GET", "/v1/objects/Note/1").status == 401)
    #expect(throws: AccessError.self) { try Self.guarded { $0.access.accountPrefix = "none" } }
    let without = try GuardedServer(schema: Self.schema, objects: [])
    #expect(try make(without, "ann", #"{"password":"correct horse"}"#).problem == "not-found")
    #expect(try signIn(without, "ann", "correct horse").status == 401)
  }
}
