import Cluster
import Dispatch
import KeyValueModel
import KeywayServer
import Store
import Support
import TestKit
import Testing

@Suite("Objects that end by themselves")
struct LeaseTests {
  private static let json = ["Content-Type": "application/json"]

  private func put(
    _ server: TestServer, _ object: String, _ lifetime: String?, _ body: String = "{}"
  ) throws -> WireResponse {
    try server.client.send(
      "PUT", "/v1/objects/\(object)", lifetime.map { ["Keyway-Lifetime": $0] } ?? [:], body: body)
  }

  /// Returns an object's lease in its JSON; nil if it has none.
  private static func lifetime(_ object: Value) -> Value? {
    guard case .object(let members) = object else { return nil }
    return members["@lifetime"]
  }

  private func exists(_ server: TestServer, _ object: String) throws -> Bool {
    try server.client.send("GET", "/v1/objects/\(object)").status == 200
  }

  private func ends(_ server: TestServer, _ object: String) throws -> Bool {
    try Deadline().awaits { try !exists(server, object) }
  }

  @Test("A lifetime is shown as it was said, until another is; what says nothing leaves it")
  func shown() throws {
    let server = try TestServer()
    func lifetime() throws -> Value? { Self.lifetime(try server.client.json("/v1/objects/Note/9")) }
    #expect(try put(server, "Note/9", "3600").json["@lifetime"] == .integer(3600))
    #expect(try lifetime() == .integer(3600))
    #expect(try server.client.json("/v1/objects/Note/9?keys=text")["@lifetime"] == .integer(3600))
    let rows = try server.client.json("/v1/objects/Note?filter=text==null")["objects"].items
    #expect(rows.map { $0["@lifetime"] } == [.integer(3600)])
    try server.set("Note/9/text", "\"x\"")
    try server.client.must("PATCH", "/v1/objects/Note/9", body: #"{"text":"y","@lifetime":7}"#)
    #expect(try put(server, "Note/9", nil).json["@lifetime"] == .integer(3600))
    let patch = try server.client.must("PATCH", "/v1/objects/Note/9", ["Keyway-Lifetime": "31536000"], body: "{}")
    #expect(patch.json["@lifetime"] == .integer(31_536_000))
    try server.client.must(
      "PATCH", "/v1/objects/Note/9",
      ["Keyway-Lifetime": "none", "Content-Type": "application/json-patch+json"],
      body: #"[{"op":"test","path":"/@lifetime","value":31536000}]"#)
    #expect(try lifetime() == nil)
    let made = try server.client.must("POST", "/v1/objects/Note", ["Keyway-Lifetime": "60"], body: "{}")
    #expect(made.json["@lifetime"] == .integer(60))
    // An object that is created again has no lease, whatever it had before.
    _ = try put(server, "Note/9", "3600")
    try server.commit(
      #"{"op":"delete","object":"Note/9"}"#, #"{"op":"create","object":"Note/9","value":{}}"#)
    #expect(try lifetime() == nil)
  }

  @Test("Transactions say lifetimes too, with a result and an index for each operation that was sent")
  func transactions() throws {
    let server = try TestServer()
    let answer = try server.commit(
      #"{"op":"create","object":"Note/7","value":{},"lifetime":60}"#,
      #"{"op":"patch","object":"Note/1","value":{},"lifetime":90}"#,
      #"{"op":"set","object":"Note/1","keyPath":"text","value":"z"}"#)
    #expect(answer.json["results"].elements?.count == 3)
    #expect(try server.client.json("/v1/objects/Note/7")["@lifetime"] == .integer(60))
    #expect(try server.client.json("/v1/objects/Note/1")["@lifetime"] == .integer(90))
    try server.commit(#"{"op":"patch","object":"Note/1","value":{},"lifetime":"none"}"#)
    #expect(Self.lifetime(try server.client.json("/v1/objects/Note/1")) == nil)
    func refusal(_ operations: String...) throws -> WireResponse {
      let response = try server.client.send(
        "POST", "/v1/transactions", body: "{\"operations\":[\(operations.joined(separator: ","))]}")
      #expect(response.status >= 400, "\(operations)")
      return response
    }
    let leased = #"{"op":"patch","object":"Note/1","value":{},"lifetime":60}"#
    #expect(try refusal(leased, leased, #"{"op":"delete","object":"Note/none"}"#).json["operation"] == .integer(2))
    #expect(
      try refusal(leased, #"{"op":"willChange","object":"Note/1","key":"text"}"#, leased).json["operation"]
        == .integer(1))
    let single = #"{"op":"patch","object":"Note/none","value":{},"lifetime":60}"#
    #expect(try refusal(single).json["operation"] == .integer(0))
    let bad = [
      #"{"op":"set","object":"Note/1","keyPath":"text","value":"z","lifetime":60}"#,
      #"{"op":"lifetime","object":"Note/1","lifetime":60}"#,
    ]
    let values = ["0", "-1", "1.5", "31536001", "9223372036854775808", "\"60\"", "\"stream=1-a\"", "null", "{}"]
    for operation in bad + values.map({ #"{"op":"patch","object":"Note/1","value":{},"lifetime":\#($0)}"# }) {
      #expect(try refusal(leased, operation).problem == "invalid-value", "\(operation)")
    }
    #expect(Self.lifetime(try server.client.json("/v1/objects/Note/1")) == nil)
  }

  @Test(
    "Any other header is refused, and changes nothing",
    arguments: [
      "0", "-1", "1.5", "+5", "31536001", "99999999999999999999", "forever", "stream", "stream=", "stream=1",
      "stream=0-00000000000000000000000000000000", "None", "60 s", "6e1",
    ])
  func refused(_ text: String) throws {
    let server = try TestServer()
    let revision = try server.revision
    for method in ["PUT", "PATCH"] {
      let response = try server.client.send(
        method, "/v1/objects/Note/1", ["Keyway-Lifetime": text], body: "{}")
      #expect(response.status == 422 && response.problem == "invalid-value")
    }
    let response = try server.client.send("POST", "/v1/objects/Note", ["Keyway-Lifetime": text], body: "{}")
    #expect(response.status == 422 && response.problem == "invalid-value")
    #expect(try server.revision == revision)
    // A problem of a single operation has no index.
    let missing = try server.client.send(
      "PATCH", "/v1/objects/Note/none", ["Keyway-Lifetime": "60"], body: "{}")
    #expect(missing.status == 404 && !missing.text.contains("operation"))
  }

  @Test("If a request has no whole object for a lifetime, the header is refused, and nothing is changed")
  func misplaced() throws {
    let server = try TestServer()
    let revision = try server.revision
    let requests: [(method: String, path: String, body: String?, detail: String)] = [
      ("PUT", "objects/Note/1/text", "\"x\"", "a key path has no lifetime"),
      ("DELETE", "objects/Note/1/text", nil, "a key path has no lifetime"),
      ("DELETE", "objects/Note/1", nil, "a DELETE ends the object at once"),
      ("POST", "transactions", #"{"operations":[]}"#, "'lifetime' of create and patch"),
    ]
    for (method, path, body, detail) in requests {
      let response = try server.client.send(method, "/v1/\(path)", ["Keyway-Lifetime": "60"], body: body)
      #expect(response.status == 422 && response.problem == "invalid-value", "\(method) \(path)")
      #expect(response.json["detail"].text?.contains(detail) == true, "\(response.text)")
    }
    #expect(try server.revision == revision)
    // A missing object is reported first.
    let missing = try server.client.send("DELETE", "/v1/objects/Note/none", ["Keyway-Lifetime": "60"])
    #expect(missing.status == 404)
  }

  @Test("Over the limit of all a lease is 503, over a client's share 429; a renewal is neither; a metric counts them")
  func limits() throws {
    let server = try TestServer {
      $0.store.leases = 3
      $0.store.leasesPerClient = 2
    }
    for id in ["a", "b"] { #expect(try put(server, "Note/\(id)", "600").status == 201) }
    let own = try put(server, "Note/c", "600")
    #expect(own.status == 429 && own.problem == "too-many-leases-of-client" && own["Retry-After"] != nil)
    let other = server.client(from: "127.0.0.9")
    func otherPut(_ id: String) throws -> WireResponse {
      try other.send("PUT", "/v1/objects/Note/\(id)", ["Keyway-Lifetime": "600"], body: "{}")
    }
    #expect(try otherPut("c").status == 201)
    let all = try otherPut("d")
    #expect(all.status == 503 && all.problem == "too-many-leases" && all["Retry-After"] != nil)
    #expect(try put(server, "Note/a", "900").json["@lifetime"] == .integer(900))
    #expect(try put(server, "Note/d", nil).status == 201)
    #expect(try server.client.must("GET", "/metrics").text.contains("\nkeyway_leases 3\n"))
    try server.client.must("DELETE", "/v1/objects/Note/b")
    #expect(try put(server, "Note/d", "600").status == 200)
  }

  @Test("An object ends, is told to be gone, and one whose deletion is denied ends when nothing denies it")
  func ending() throws {
    let server = try TestServer()
    try server.client.must("PATCH", "/v1/objects/Account/1", ["Keyway-Lifetime": "1"], body: "{}")
    _ = try put(server, "Note/9", "1")
    let stream = try server.subscribed("Note/9/text")
    #expect(try stream.next().name == "gone")
    #expect(try !exists(server, "Note/9"))
    #expect(try exists(server, "Account/1"))
    try server.set("Account/1/owner", "null")
    #expect(try ends(server, "Account/1"))
    #expect(try exists(server, "Person/1"))
  }

  @Test("An object that lasts with a stream ends with it, and never names it")
  func streams() throws {
    let elapsed = Locked<UInt64>(100)
    let server = try TestServer(now: { elapsed.withLock { $0 } })
    let cells = try server.client.stream("/v1/streams", Self.json, method: "POST", body: #"{"cells":{}}"#)
    let name = try #require(try cells.next().json["stream"].text)
    #expect(try put(server, "Note/a", "stream=\(name)").json["@lifetime"].text == "stream")
    let plain = try server.subscribed("Account/2/balance")
    let listed = try server.client.json("/v1/streams")["streams"].elements ?? []
    let other = try #require(listed.compactMap { $0["stream"].text }.first { $0 != name })
    try server.commit(#"{"op":"create","object":"Note/b","value":{},"lifetime":"stream=\#(other)"}"#)
    #expect(try server.client.json("/v1/objects/Note/b")["@lifetime"].text == "stream")
    let journal = try server.client.must("GET", "/v1/journal").text
    #expect(journal.contains(#""lifetime":"stream""#) && !journal.contains(name) && !journal.contains(other))
    plain.socket.close()
    #expect(try ends(server, "Note/b"))
    // The stream is cut, and kept for its client.
    let cut = try CuttableStream(server)
    let cutName = try #require(cut.url.split(separator: "/").last.map(String.init))
    _ = try put(server, "Note/c", "stream=\(cutName)")
    try cut.cut()
    _ = try put(server, "Note/d", "1")
    #expect(try ends(server, "Note/d"))
    #expect(try exists(server, "Note/a") && exists(server, "Note/c"))
    elapsed.withLock { $0 += 61 }
    #expect(try ends(server, "Note/c"))
    try server.client.must("DELETE", "/v1/streams/\(name)")
    #expect(try ends(server, "Note/a"))
    #expect(try put(server, "Note/e", "stream=\(name)").status == 422)
  }

  @Test("Leases go on after a restart, and those of streams end")
  func restart() throws {
    let folder = try ScratchDirectory()
    func start() throws -> TestServer {
      let journal = try SQLiteJournal(directory: folder.path + "/store", durability: .synced) {
        JournalIdentity(epoch: "leases", schema: "")
      }
      return try TestServer(objects: [], journal: journal) { $0.streams.resumeSeconds = 1 }
    }
    do {
      let server = try start()
      let cells = try server.client.stream("/v1/streams", Self.json, method: "POST", body: #"{"cells":{}}"#)
      let name = try #require(try cells.next().json["stream"].text)
      _ = try put(server, "Note/short", "2")
      _ = try put(server, "Note/long", "3600")
      _ = try put(server, "Note/stream", "stream=\(name)")
      server.server.drain()
    }
    let server = try start()
    #expect(try ends(server, "Note/short"))
    #expect(try ends(server, "Note/stream"))
    #expect(try server.client.json("/v1/objects/Note/long")["@lifetime"] == .integer(3600))
  }

  @Test("On a server of its own, what lasts with a stream of a node of earlier times ends after its start")
  func otherNode() throws {
    let folder = try ScratchDirectory()
    func start(isLeader: Bool) throws -> TestServer {
      let journal = try SQLiteJournal(directory: folder.path + "/store", durability: .synced) {
        JournalIdentity(epoch: "leases", schema: "")
      }
      return try TestServer(objects: [], journal: journal) {
        $0.cluster.followers = isLeader
        $0.streams.resumeSeconds = isLeader ? 3_600 : 1
      }
    }
    do {
      let leader = try start(isLeader: true)
      let object = try #require(Reference("Note/other"))
      let stream = StreamNumbers(node: "http://follower.example:8080", random: 1).first + 1
      let isDone = DispatchSemaphore(value: 0)
      _ = leader.server.store.submit(Transaction([.create(object, [:]), .lifetime(object, .stream(stream))])) {
        _, _, _ in isDone.signal()
      }
      isDone.wait()
      #expect(try exists(leader, "Note/other"))
      leader.server.drain()
    }
    let server = try start(isLeader: false)
    #expect(try ends(server, "Note/other"))
  }

  @Test("The stream is one of the writer's own, and a lifetime needs 'delete'; the end asks none")
  func access() throws {
    let bank = try GuardedServer.bank()
    func open(_ headers: [String: String]) throws -> (WireStream, String) {
      let stream = try bank.client.stream(
        "/v1/streams", headers.merging(Self.json) { $1 }, method: "POST", body: #"{"cells":{}}"#)
      return (stream, try #require(try stream.next().json["stream"].text))
    }
    let (anns, ann) = try open(bank.ann)
    let (tims, tim) = try open(bank.teller)
    func write(_ stream: String, _ headers: [String: String]) throws -> Int {
      try bank.client.send(
        "PUT", "/v1/objects/Account/9", headers.merging(["Keyway-Lifetime": "stream=\(stream)"]) { $1 },
        body: #"{"balance":1}"#
      ).status
    }
    #expect(try write(ann, bank.teller) == 422)
    #expect(try write(ann, bank.ann) == 403)
    #expect(try write(tim, bank.teller) == 403)
    let (roots, root) = try open(bank.admin)
    #expect(try write(root, bank.admin) == 201)
    #expect(try bank.client.send("DELETE", "/v1/objects/Account/9", bank.teller).status == 403)
    try bank.client.must("DELETE", "/v1/streams/\(root)", bank.admin)
    #expect(try Deadline().awaits { try bank.get("Account/9", bank.teller).status == 404 })
    anns.socket.close()
    tims.socket.close()
    roots.socket.close()
  }
}
