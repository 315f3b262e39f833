import Cluster
import Foundation
import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

/// A server with keys, and tokens that they sign.
final class GuardedServer {
  let folder: ScratchDirectory
  let key: DevelopmentKey
  let server: TestServer
  var path: String { folder.path + "/keys.json" }

  init(
    journal: (any TransactionJournal)? = nil, schema: String = Fixture.schema,
    objects: [(String, String)] = Fixture.objects,
    _ configure: (inout KeywayServer.Configuration) -> Void = { _ in }
  ) throws {
    folder = try ScratchDirectory()
    let text = DevelopmentKey.makeSet()
    let path = folder.path + "/keys.json"
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    key = try #require(DevelopmentKey(of: try KeySet(json: Array(text.utf8))))
    server = try TestServer(schema: schema, objects: [], journal: journal) {
      $0.access.keys = path
      configure(&$0)
    }
    for (reference, body) in objects {
      try server.client.must("PUT", "/v1/objects/\(reference)", admin, body: body)
    }
  }

  var client: WireClient { server.client }

  /// Returns the header with a token of a subject, valid for so many seconds from now.
  func bearer(_ sub: String, roles: [String] = [], for seconds: Int64 = 600, _ claims: JSONObject = [:]) -> [String:
    String]
  {
    ["Authorization": "Bearer \(token(sub, roles: roles, for: seconds, claims))"]
  }

  func token(_ sub: String, roles: [String] = [], for seconds: Int64 = 600, _ claims: JSONObject = [:]) -> String {
    let now = Int64(Date().timeIntervalSince1970)
    var all: JSONObject = [
      "sub": .string(sub), "iat": .integer(now), "exp": .integer(now + seconds),
      "roles": .array(roles.map(Value.string)),
    ]
    for (name, value) in claims.members { all[name] = value }
    return key.token(all)
  }

  var admin: [String: String] { bearer("root", roles: ["keyway-admin"]) }
  var reader: [String: String] { bearer("alice", roles: ["reader"]) }
}

/// Returns the next event of a type.
func first(_ name: String, of stream: WireStream) throws -> WireEvent {
  try #require(try stream.events { $0.name == name }.last)
}

/// A schema without rules, on a server with keys: everything for admins, nothing for others.
@Suite("Access to routes") struct AccessTests {
  private static let put = #"{"firstName":"Eve","lastName":"Eve"}"#
  /// The status of each route and form of write for an anonymous client, a client with a token, and an admin.
  private static let table: [(method: String, target: String, body: String?, answers: [Int])] = [
    ("GET", "/healthz", nil, [200, 200, 200]),
    ("GET", "/readyz", nil, [200, 200, 200]),
    ("GET", "/v1/problems/forbidden", nil, [200, 200, 200]),
    ("GET", "/v1/session", nil, [200, 200, 200]),
    ("GET", "/metrics", nil, [401, 403, 200]),
    ("GET", "/v1/status", nil, [401, 403, 200]),
    ("GET", "/v1/journal", nil, [401, 403, 200]),
    ("GET", "/v1/access/revocations", nil, [401, 403, 200]),
    ("GET", "/v1/access/accounts", nil, [401, 403, 404]),
    ("PUT", "/v1/access/accounts/ann", #"{"password":"correct horse"}"#, [401, 403, 404]),
    ("GET", "/v1/objects", nil, [401, 403, 200]),
    ("GET", "/v1/entities", nil, [401, 200, 200]),
    ("GET", "/v1/entities/Account", nil, [401, 200, 200]),
    ("GET", "/v1/openapi.json", nil, [401, 200, 200]),
    ("GET", "/v1/objects/Account", nil, [200, 200, 200]),
    ("GET", "/v1/objects/Nothing", nil, [401, 404, 404]),
    ("GET", "/v1/objects/Account/1", nil, [401, 404, 200]),
    ("GET", "/v1/objects/Account/99", nil, [401, 404, 404]),
    ("HEAD", "/v1/objects/Account/1", nil, [401, 404, 200]),
    ("GET", "/v1/objects/Account/1/balance", nil, [401, 404, 200]),
    ("GET", "/v1/objects/Account/1/owner.lastName", nil, [401, 404, 200]),
    ("GET", "/v1/streams", nil, [401, 200, 200]),
    ("GET", "/v1/streams/1-00", nil, [401, 404, 404]),
    ("POST", "/v1/objects/Person", put, [401, 403, 201]),
    ("PUT", "/v1/objects/Person/9", put, [401, 403, 201]),
    ("PUT", "/v1/objects/Account/1/balance", "7", [401, 404, 200]),
    ("PATCH", "/v1/objects/Account/1", #"{"balance":8}"#, [401, 404, 200]),
    ("POST", "/v1/transactions", #"{"operations":[]}"#, [401, 200, 200]),
    ("DELETE", "/v1/objects/Note/1", nil, [401, 404, 204]),
  ]

  @Test("Every route and form of write, asked by nobody, by somebody and by an admin")
  func everyRoute() throws {
    let guarded = try GuardedServer()
    let identities = [[:], guarded.reader, guarded.admin]
    for row in Self.table {
      for (headers, status) in zip(identities, row.answers) {
        let revision = guarded.server.server.store.snapshot.revision
        let response = try guarded.client.send(row.method, row.target, headers, body: row.body)
        #expect(response.status == status, "\(row.method) \(row.target) of \(headers.isEmpty ? "nobody" : "a token")")
        if status >= 400 {
          #expect(guarded.server.server.store.snapshot.revision == revision)
          #expect((response["WWW-Authenticate"] != nil) == (status == 401))
        }
      }
    }
  }

  @Test("A token that is not good is 401 wherever it is sent, also where nobody needs one")
  func badTokens() throws {
    let guarded = try GuardedServer()
    let foreign = try #require(DevelopmentKey(of: try KeySet(json: Array(DevelopmentKey.makeSet().utf8))))
    let good = guarded.token("alice")
    let bad = [
      "Bearer ", "Bearer x", "Basic YTpi", "Bearer \(good) \(good)", "Bearer \(good.dropLast())",
      "Bearer " + foreign.token(["sub": .string("alice"), "exp": .integer(4_000_000_000)]),
      guarded.bearer("alice", for: -60)["Authorization"] ?? "",
      "Bearer " + guarded.token("alice", ["nbf": .integer(4_000_000_000)]),
    ]
    for authorization in bad {
      for target in ["/v1/objects/Account", "/v1/objects/Account/1", "/v1/session", "/healthz", "/v1/none"] {
        let response = try guarded.client.send("GET", target, ["Authorization": authorization])
        #expect(response.status == 401 && response.problem == "unauthenticated", "\(authorization) \(target)")
        #expect(response["WWW-Authenticate"] == #"Bearer error="invalid_token""#)
        // A problem never reveals the content of a token.
        #expect(!response.text.contains("alice"))
      }
    }
    let accepted = try guarded.client.send("GET", "/v1/objects/Account/1", ["Authorization": "bearer \(good)"])
    #expect(accepted.status == 404)
  }

  @Test("Fetches and live queries give what may be read, which is nothing, whatever the filter says")
  func emptyFetches() throws {
    let guarded = try GuardedServer()
    for headers in [[:], guarded.reader] {
      for query in [
        "", "?filter=true", "?filter=true)%20%7C%7C%20(true", "?section=isOpen", "?sort=balance&expand=owner",
      ] {
        let target = "/v1/objects/Account\(query)"
        let response = try guarded.client.send("GET", target, headers)
        if query.contains(")") {
          #expect(response.status == 400 && response.problem == "malformed-filter")
          continue
        }
        #expect(response.status == 200 && response.json["count"].whole == 0, "\(target)")
        #expect(response.json["objects"].items.isEmpty)
        if !query.contains("expand") {
          let stream = try guarded.client.stream(target, headers)
          let results = try first("results", of: stream)
          #expect(results.json["count"].whole == 0)
        }
      }
    }
    let page = try guarded.client.send("GET", "/v1/objects/Account?limit=1", guarded.admin)
    let word = try #require(page.json["next"].text)
    let next = "/v1/objects/Account?limit=1&page=\(word)"
    #expect(try guarded.client.send("GET", next, guarded.admin).json["objects"].items.count == 1)
    #expect(try guarded.client.send("GET", next, guarded.reader).problem == "page-expired")
    #expect(try guarded.client.send("GET", next).problem == "page-expired")
    let stream = try guarded.client.stream("/v1/objects/Account", guarded.reader)
    _ = try first("results", of: stream)
    try guarded.client.must("PUT", "/v1/objects/Account/1/balance", guarded.admin, body: "77")
    let cells = try guarded.client.send(
      "POST", "/v1/streams", guarded.reader, body: #"{"cells":{"a":{"object":"Account/1","keyPaths":["balance"]}}}"#)
    #expect(cells.status == 404 && cells.problem == "unknown-object")
  }

  @Test("A stream is its owner's and the admins', and ends within moments after its token")
  func streams() throws {
    let guarded = try GuardedServer { $0.access.leewaySeconds = 0 }
    let other = guarded.bearer("bob")
    let short = guarded.bearer("alice", for: 2)
    let ending = try guarded.client.stream("/v1/streams", short)
    let staying = try guarded.client.stream("/v1/streams", guarded.reader)
    let ended = try #require(try first("open", of: ending).json["stream"].text)
    let kept = try #require(try first("open", of: staying).json["stream"].text)
    let target = "/v1/streams/\(kept)"
    #expect(try guarded.client.send("GET", target, guarded.reader).status == 200)
    #expect(try guarded.client.send("GET", target, guarded.admin).status == 200)
    #expect(try guarded.client.send("GET", target, other).problem == "unknown-stream")
    #expect(try guarded.client.send("PUT", target + "/cells", other, body: #"{"cells":{}}"#).status == 404)
    #expect(try guarded.client.send("DELETE", target, other).status == 404)
    #expect(try guarded.client.send("DELETE", target).status == 401)
    let own = try guarded.client.send("GET", "/v1/streams", guarded.bearer("alice"))
    #expect(Set(own.json["streams"].items.compactMap { $0["stream"].text }) == [ended, kept])
    #expect(try guarded.client.send("GET", "/v1/streams", other).json["streams"].items.isEmpty)
    let bye = try ending.rest().last
    #expect(bye?.name == "bye" && bye?.json["reason"].text == "expired")
    #expect(try guarded.client.send("GET", target, guarded.reader).status == 200)
  }

  @Test("The cells of a stream are its owner's and the admins', too, by every method")
  func cells() throws {
    let bank = try GuardedServer.bank()
    let stream = try bank.client.stream("/v1/streams", bank.ann)
    let target = try #require(try first("open", of: stream).json["url"].text) + "/cells"
    let body = #"{"object":"Account/1","keyPaths":["balance"]}"#
    try bank.client.must("PUT", target + "/a", bank.ann, body: body)
    for (method, one, all) in [
      ("GET", nil, nil), ("PUT", body, #"{"cells":{"a":\#(body)}}"#), ("DELETE", nil, nil),
      ("PATCH", #"{"visible":false}"#, #"{"cells":{"a":{"visible":false}}}"#),
    ] {
      for (target, body) in [(target + "/a", one), (target, all)] {
        #expect(try bank.client.send(method, target, bank.bob, body: body).problem == "unknown-stream", "\(method)")
        #expect(try bank.client.send(method, target, body: body).status == 401, "\(method)")
      }
    }
    #expect(try bank.client.send("GET", target + "/a", bank.admin).json["visible"] == .bool(true))
  }

  @Test("Without a token a stream with cells shows what nobody in particular may read, to who knows its name")
  func strangers() throws {
    let guarded = try GuardedServer.bank()
    let cells = #"{"cells":{"a":{"object":"News/1","keyPaths":["text","about.balance"],"options":["new","initial"]}}}"#
    let json = ["Content-Type": "application/json"]
    let stream = try guarded.client.stream("/v1/streams", json, method: "POST", body: cells)
    let open = try first("open", of: stream)
    let url = try #require(open.json["url"].text)
    #expect(try first("change", of: stream).changes.map { $0["new"].json } == [#""hello""#, "null"])
    try guarded.client.must("PUT", "/v1/objects/News/1/text", guarded.ann, body: #""more""#)
    #expect(try first("change", of: stream).changes.map { $0["new"].json } == [#""more""#])
    // Objects that it may not show do not exist for it, in all ways to bind them.
    for body in [#"{"object":"Account/1","keyPaths":["balance"]}"#, #"{"object":"Account/9","keyPaths":["balance"]}"#] {
      #expect(try guarded.client.send("PUT", url + "/cells/b", body: body).status == 401)
    }
    try guarded.client.must("PUT", url + "/cells/b", body: #"{"entity":"Customer"}"#)
    #expect(try first("results", of: stream).json["count"].whole == 0)
    // It belongs to clients without a token, and to admins; only their lists contain its name.
    #expect(try guarded.client.send("GET", url, guarded.ann).problem == "unknown-stream")
    #expect(try guarded.client.send("GET", url, guarded.admin).status == 200)
    #expect(try guarded.client.send("GET", "/v1/streams").status == 401)
    #expect(try guarded.client.send("GET", "/v1/streams", guarded.ann).json["streams"].items.isEmpty)
    let hers = try guarded.client.stream("/v1/streams", guarded.ann)
    let name = try #require(try first("open", of: hers).json["url"].text)
    for method in ["GET", "DELETE"] { #expect(try guarded.client.send(method, name).status == 401) }
    // Another connection takes it over like any other stream.
    let again = try guarded.client.stream(url)
    #expect(try first("open", of: again).json["url"].text == url)
    #expect(try guarded.client.send("DELETE", url).status == 204)
  }

  @Test("Keys that change count from then on; a broken file changes nothing")
  func keys() throws {
    let guarded = try GuardedServer()
    let stream = try guarded.client.stream("/v1/streams", guarded.reader)
    _ = try first("open", of: stream)
    let former = guarded.admin
    try "{".write(toFile: guarded.path, atomically: true, encoding: .utf8)
    guarded.server.server.reloadKeys()
    #expect(try guarded.client.send("GET", "/v1/status", former).status == 200)
    let text = DevelopmentKey.makeSet()
    try text.write(toFile: guarded.path, atomically: true, encoding: .utf8)
    guarded.server.server.reloadKeys()
    #expect(try guarded.client.send("GET", "/v1/status", former).status == 401)
    let bye = try stream.rest().last
    #expect(bye?.name == "bye" && bye?.json["reason"].text == "expired")
    let key = try #require(DevelopmentKey(of: try KeySet(json: Array(text.utf8))))
    let token = key.token([
      "sub": .string("new"), "exp": .integer(4_000_000_000), "roles": .array([.string("keyway-admin")]),
    ])
    #expect(try guarded.client.send("GET", "/v1/status", ["Authorization": "Bearer \(token)"]).status == 200)
  }

  @Test("Admins are whom access.admin says; an error in it is no")
  func admins() throws {
    let guarded = try GuardedServer { $0.access.admin = #"identity.sub == "root" || identity.level > 3"# }
    #expect(try guarded.client.send("GET", "/v1/status", guarded.bearer("root")).status == 200)
    #expect(try guarded.client.send("GET", "/v1/status", guarded.bearer("eve")).status == 403)
    #expect(try guarded.client.send("GET", "/v1/status", guarded.bearer("eve", ["level": .integer(4)])).status == 200)
    #expect(try guarded.client.send("GET", "/v1/status", guarded.bearer("eve", ["level": .string("x")])).status == 403)
    // By default the claim is a list that contains the role: `in` would find it among the keys of a map, whatever their
    // values.
    let usual = try GuardedServer(objects: [])
    let map: Value = .object(["keyway-admin": .bool(false)])
    for roles in [map, .string("keyway-admin"), .null, .array([.string("keyway")])] {
      let headers = usual.bearer("eve", ["roles": roles])
      #expect(try usual.client.send("GET", "/v1/status", headers).status == 403, "\(roles)")
    }
    #expect(try usual.client.send("GET", "/v1/status", usual.admin).status == 200)
    let open = try GuardedServer { $0.access.openMetrics = true }
    #expect(try open.client.send("GET", "/metrics").status == 200)
    #expect(try open.client.send("GET", "/v1/journal").status == 401)
  }

  private typealias Change = @Sendable (inout KeywayServer.Configuration) -> Void

  private static func change(_ change: @escaping Change) -> Change { change }

  @Test(
    "Mistakes in the settings are reported at the start",
    arguments: [
      ("access.keys: '/nowhere/keys' cannot be read", change { $0.access.keys = "/nowhere/keys" }),
      ("access.admin", change { $0.access.admin = "identity." }),
      ("access.admin is not a condition", change { $0.access.admin = "1 + 1" }),
      ("access.origins: 'example.org' is not an origin", change { $0.access.origins = ["example.org"] }),
      ("access.origins: 'https://a/' is not an origin", change { $0.access.origins = ["https://a/"] }),
      ("access.origins: 'http://:' is not an origin", change { $0.access.origins = ["http://:"] }),
      ("access.origins: 'https://*.a' is not an origin", change { $0.access.origins = ["https://*.a"] }),
      ("access.origins: 'https://a:0' is not an origin", change { $0.access.origins = ["https://a:0"] }),
      ("access.origins: 'https://u@a' is not an origin", change { $0.access.origins = ["https://u@a"] }),
      ("names: '*' matches no Host", change { $0.names = ["*"] }),
      ("names: 'a, b' matches no Host", change { $0.names = ["a, b"] }),
      ("names: 'a:80' matches no Host", change { $0.names = ["a:80"] }),
      ("beyond the loopback, but no keys are set", change { $0.host = "0.0.0.0" }),
      ("beyond the loopback, but no keys are set", change { $0.host = "127.example.org" }),
      ("nodes.urls: 'localhost:8080'", change { $0.cluster.urls = ["localhost:8080"] }),
    ])
  func settings(reason: String, change: @escaping @Sendable (inout KeywayServer.Configuration) -> Void) {
    let error = #expect(throws: (any Error).self) { try TestServer(objects: [], change) }
    #expect(error.map { "\($0)" }?.contains(reason) == true, "\(error.map { "\($0)" } ?? "")")
  }

  @Test("Objects of a schema with rules are served without keys only if that is said")
  func rulesWithoutKeys() throws {
    let schema = "entities: {Box: {access: {read: 'false'}, keys: {name: {type: string}}}}"
    let error = #expect(throws: AccessError.self) { try TestServer(schema: schema, objects: []) }
    #expect(error?.description.contains("the schema has access rules, but no keys are set") == true)
    #expect(error?.description.contains("access.open") == true)
    let open = try TestServer(schema: schema, objects: []) { $0.access.open = true }
    #expect(try open.client.send("GET", "/v1/objects/Box").status == 200)
    let guarded = try GuardedServer(schema: schema, objects: [])
    #expect(try guarded.client.send("GET", "/v1/objects/Box", guarded.reader).status == 200)
  }

  @Test("The identity of a node may use what is for nodes, and nothing else; admins may as well")
  func nodes() throws {
    let guarded = try GuardedServer { $0.cluster.followers = true }
    let node = guarded.bearer("b", roles: ["keyway-node"])
    func status(_ method: String, _ target: String, _ headers: [String: String], _ body: String? = nil) throws -> Int {
      try guarded.client.send(method, target, headers, body: body).status
    }
    for target in ["/v1/nodes", "/v1/nodes/revocations"] {
      #expect(try status("GET", target, node) == 200 && status("GET", target, guarded.admin) == 200)
      #expect(try status("GET", target, guarded.reader) == 403 && status("GET", target, [:]) == 401)
    }
    for target in [
      "/v1/entities", "/v1/objects", "/v1/objects/Account", "/v1/objects/Account/1", "/v1/journal", "/v1/streams",
      "/v1/status", "/metrics", "/v1/access/revocations", "/v1/openapi.json",
    ] { #expect(try status("GET", target, node) == 403, "\(target)") }
    #expect(try status("PUT", "/v1/objects/Account/1/balance", node, "1") == 403)
    #expect(try status("POST", "/v1/transactions", node, #"{"operations":[]}"#) == 403)
    for target in ["/healthz", "/v1/session"] { #expect(try status("GET", target, node) == 200) }
    // A role that is a member of something other than a list does not make a node.
    let other = guarded.bearer("c", ["roles": .object(["keyway-node": .bool(true)])])
    #expect(try status("GET", "/v1/nodes", other) == 403 && status("GET", "/v1/entities", other) == 200)
  }
}
