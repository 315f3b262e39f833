import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Cells")
struct CellTests {
  let server: TestServer
  let stream: WireStream
  let path: String

  init() throws {
    server = try TestServer()
    stream = try server.client.stream("/v1/streams")
    let open = try stream.next()
    path = "/v1/streams/\(try #require(open.json["stream"].text))"
  }

  /// Binds a cell and returns the response.
  @discardableResult
  private func bind(_ cell: String, _ body: String, method: String = "PUT") throws -> Value {
    try server.client.must(method, "\(path)/cells/\(cell)", body: body).json
  }

  /// Returns the events before that of a marker commit, which this stream observes.
  private func told() throws -> [WireEvent] {
    try bind("marker", #"{"object":"Person/2","keyPaths":["email"],"options":[]}"#)
    try server.set("Person/2/email", #""a@b""#)
    let revision = try server.revision
    let events = try stream.events { event in
      event.json["revision"].whole == revision && event.changes.contains { $0["cell"].text == "marker" }
    }
    return Array(events.dropLast())
  }

  @Test("open is first: an unguessable name, the revision, the heartbeat, and no id")
  func opening() throws {
    var names: Set<String> = []
    for _ in 0..<3 {
      let open = try server.client.stream("/v1/streams").next()
      #expect(open.name == "open")
      #expect(open.id == nil)
      #expect(open.retry != nil)
      #expect(open.json["revision"].whole == (try server.revision))
      #expect(open.json["heartbeat"].whole == 15)
      let name = try #require(open.json["stream"].text)
      #expect(name.utf8.count >= 32)
      names.insert(String(name.suffix(16)))
    }
    #expect(names.count == 3)
  }

  @Test("POST binds all cells at once, told in one initial event")
  func post() throws {
    let stream = try server.client.stream(
      "/v1/streams", ["Content-Type": "application/json"], method: "POST",
      body: #"{"cells":{"a":{"object":"Account/1","keyPaths":["balance"]},"b":{"object":"Person/1","context":"c"}}}"#)
    #expect(try stream.next().name == "open")
    let initial = try stream.next()
    #expect(initial.json["initial"] == .bool(true))
    #expect(
      initial.changes.map(\.json) == [
        #"{"cell":"a","object":"Account/1","keyPath":"balance","kind":"setting","new":100}"#,
        #"{"cell":"b","object":"Person/1","keyPath":"firstName","kind":"setting","new":"Ada","context":"c"}"#,
        #"{"cell":"b","object":"Person/1","keyPath":"lastName","kind":"setting","new":"Lovelace","context":"c"}"#,
      ])
  }

  @Test("The same binding again changes nothing, tells nothing and registers nothing twice")
  func idempotent() throws {
    let body = #"{"object":"Account/1","keyPaths":["balance"],"options":["new"]}"#
    for _ in 0..<3 { try bind("a", body) }
    #expect(try server.client.json("/v1/status")["observations"].whole == 1)
    try server.set("Account/1/balance", "1")
    #expect(try told().count == 1)
  }

  @Test("Re-binding ends the old before it starts the new, and tells the new state")
  func rebinding() throws {
    try bind("a", #"{"object":"Account/1","keyPaths":["balance"]}"#)
    try bind("a", #"{"object":"Account/2","keyPaths":["balance"]}"#)
    try server.set("Account/1/balance", "1")
    try server.set("Account/2/balance", "2")
    let told = try told()
    #expect(told.flatMap(\.changes).map { $0["object"].text } == ["Account/1", "Account/2", "Account/2"])
    #expect(told.map { $0.json.has("initial") } == [true, true, false])
  }

  @Test("Setting the object to null is reuse: the rest of the binding stays")
  func reuse() throws {
    try bind("a", #"{"object":"Account/1","keyPaths":["balance"],"context":"x"}"#)
    let empty = try bind("a", #"{"object":null}"#, method: "PATCH")
    #expect(empty["object"].isNull)
    #expect(empty["keyPaths"].json == #"["balance"]"#)
    try server.set("Account/1/balance", "1")
    try bind("a", #"{"object":"Account/2"}"#, method: "PATCH")
    let told = try told()
    #expect(told.flatMap(\.changes).map { $0["new"].json } == ["100", "40"])
    #expect(told.last?.changes.first?["context"].text == "x")
  }

  @Test("An invisible cell is told nothing, and one merged change when it is seen again")
  func visibility() throws {
    try bind("a", #"{"object":"Account/1","keyPaths":["balance","visits"],"options":["old","new"]}"#)
    try bind("a", #"{"visible":false}"#, method: "PATCH")
    for number in 1...5 { try server.set("Account/1/balance", "\(number)") }
    #expect(try told().isEmpty)
    #expect(try server.client.json("\(path)/cells/a")["pending"].whole == 5)
    try bind("a", #"{"visible":true}"#, method: "PATCH")
    let told = try told()
    #expect(
      told.flatMap(\.changes).map(\.json) == [
        #"{"cell":"a","object":"Account/1","keyPath":"balance","kind":"setting","old":100,"new":5,"coalesced":5}"#
      ])
    let cell = try server.client.json("\(path)/cells/a")
    #expect(cell["pending"].whole == 0)
    #expect(cell["told"].whole == 1)
  }

  @Test(
    "Pending changes of an invisible cell survive a change of its context or its options",
    arguments: [(#"{"context":"row 3"}"#, #"{"visible":true}"#), ("{}", #"{"options":["new"],"visible":true}"#)])
  func changedWhileInvisible(_ change: String, _ show: String) throws {
    try bind("a", #"{"object":"Account/1","keyPaths":["balance"],"options":["old","new"]}"#)
    try bind("a", #"{"visible":false}"#, method: "PATCH")
    try server.set("Account/1/balance", "5")
    try bind("a", change, method: "PATCH")
    #expect(try told().isEmpty)
    try bind("a", show, method: "PATCH")
    #expect(try told().flatMap(\.changes).map { $0["new"].double } == [5])
  }

  @Test("A cell that is bound invisible gets its initial state when it becomes visible; a merged one counts from 1")
  func boundInvisible() throws {
    try bind("a", #"{"object":"Account/1","keyPaths":["balance"],"visible":false}"#)
    try server.set("Account/1/balance", "5")
    #expect(try told().isEmpty)
    try bind("a", #"{"visible":true}"#, method: "PATCH")
    try bind("a", #"{"visible":false}"#, method: "PATCH")
    try server.set("Account/1/balance", "6")
    try bind("a", #"{"visible":true}"#, method: "PATCH")
    let told = try told()
    #expect(told.map { $0.json.has("initial") } == [true, false])
    #expect(told.map { $0.changes.first?["coalesced"].whole } == [nil, 1])
    #expect(told.map { $0.changes.first?["new"].double } == [5, 6])
  }

  @Test("A deleted object empties its cells: a gone for each, and the stream lives on")
  func gone() throws {
    try bind("a", #"{"object":"Note/1"}"#)
    try bind("b", #"{"object":"Note/1","keyPaths":["text"]}"#)
    try bind("c", #"{"object":"Note/1","visible":false}"#)
    _ = try told()
    try server.client.must("DELETE", "/v1/objects/Note/1")
    let events = try told()
    #expect(events.map(\.name) == ["gone", "gone"])
    #expect(Set(events.compactMap { $0.json["cell"].text }) == ["a", "b"])
    #expect(events.map { $0.id == nil } == [true, false])
    #expect(try server.client.json("\(path)/cells/a")["object"].isNull)
    try bind("c", #"{"visible":true}"#, method: "PATCH")
    #expect(try told().map { $0.json["cell"].text } == ["c"])
  }

  @Test("A gone has the context of its cell, also of one that was off screen, and of one bound to what is not there")
  func goneWithContext() throws {
    try bind("a", #"{"object":"Note/1","context":"x"}"#)
    try bind("b", #"{"object":"Note/1","context":"y","visible":false}"#)
    _ = try told()
    try server.client.must("DELETE", "/v1/objects/Note/1")
    #expect(try told().map { $0.json["context"].text } == ["x"])
    try bind("b", #"{"visible":true}"#, method: "PATCH")
    #expect(try told().map { $0.json["context"].text } == ["y"])
    try server.client.must(
      "PUT", "\(path)/cells", body: #"{"cells":{"z":{"object":"Note/404","context":"w"}}}"#)
    #expect(try told().map { $0.json["context"].text } == ["w"])
  }

  @Test("All cells are set at once or not at all")
  func atomic() throws {
    try bind("old", #"{"object":"Account/1"}"#)
    let wrong = try server.client.send(
      "PUT", "\(path)/cells", body: #"{"cells":{"a":{"object":"Account/2"},"b":{"object":"Accounts/404"}}}"#)
    #expect(wrong.problem == "unknown-entity")
    #expect(try server.client.json("\(path)/cells")["cells"].names == ["old"])
    let set = try server.client.must(
      "PUT", "\(path)/cells", body: #"{"cells":{"a":{"object":"Account/2"},"b":{"object":null}}}"#
    ).json
    #expect(set["cells"].names == ["a", "b"])
    #expect(try server.client.json("\(path)/cells")["cells"].names == ["a", "b"])
    try server.client.must("DELETE", "\(path)/cells")
    #expect(try server.client.json("\(path)/cells")["cells"].names.isEmpty)
    #expect(try server.client.json("/v1/status")["observations"].whole == 0)
  }

  @Test("Of cells that are set at once, one whose object is not there is told gone, once, and undoes nothing")
  func missingObject() throws {
    let cells = """
      {"cells":{"a":{"object":"Account/2"},"b":{"object":"Account/404"},"h":{"object":"Note/9","visible":false}}}
      """
    let revision = try server.revision
    try server.client.must("PUT", "\(path)/cells", body: cells)
    let events = try told()
    #expect(events.map(\.name) == ["change", "gone"])
    #expect(events.last?.data == #"{"revision":\#(revision),"cell":"b","object":"Account/404"}"#)
    #expect(try server.client.json("\(path)/cells/b")["object"].isNull)
    try server.client.must("PUT", "\(path)/cells", body: cells)
    #expect(try told().isEmpty)
    try server.client.must("PATCH", "\(path)/cells", body: #"{"cells":{"h":{"visible":true}}}"#)
    #expect(try told().map { $0.json["object"].text } == ["Note/9"])
    try server.client.must("PUT", "/v1/objects/Account/404", body: "{}")
    try server.client.must("PATCH", "\(path)/cells", body: #"{"cells":{"b":{"object":"Account/404"}}}"#)
    #expect(try told().flatMap(\.changes).map { $0["cell"].text } == ["b", "b"])
    // A request for one cell names the mistake.
    let one = try server.client.send("PUT", "\(path)/cells/b", body: #"{"object":"Account/405"}"#)
    #expect(one.problem == "unknown-object")
  }

  @Test("Some cells are changed at once or not at all: patched, made and ended")
  func patchingSome() throws {
    try bind("a", #"{"object":"Account/1","keyPaths":["balance"],"context":"x"}"#)
    try bind("b", #"{"object":"Account/1"}"#)
    try bind("c", #"{"object":"Account/2"}"#)
    _ = try told()
    let wrong = try server.client.send(
      "PATCH", "\(path)/cells", body: #"{"cells":{"a":{"object":"Account/2"},"b":null,"c":{"visible":1}}}"#)
    #expect(wrong.problem == "invalid-value")
    #expect(try told().isEmpty)
    let set = try server.client.must(
      "PATCH", "\(path)/cells", ["Content-Type": "application/merge-patch+json"],
      body: #"{"cells":{"a":{"object":"Account/2"},"b":null,"n":{"object":"Note/1"},"none":null}}"#
    ).json["cells"]
    #expect(set.names == ["a", "c", "marker", "n"])
    #expect(set["a"]["context"].text == "x" && set["a"]["object"].text == "Account/2")
    #expect(try told().flatMap(\.changes).map { $0["cell"].text } == ["a", "n", "n", "n"])
    let array = try server.client.send("PATCH", "\(path)/cells", body: #"{"cells":[]}"#)
    #expect(array.problem == "invalid-value")
    let name = try server.client.send("PATCH", "\(path)/cells", body: #"{"cells":{"a b":null}}"#)
    #expect(name.problem == "invalid-value")
  }

  @Test("Changes of several cells by one commit are one event")
  func oneEvent() throws {
    for cell in ["a", "b", "c"] { try bind(cell, #"{"object":"Account/1","keyPaths":["balance"],"options":["new"]}"#) }
    try server.set("Account/1/balance", "3")
    let cells = try stream.next().changes.compactMap { $0["cell"].text }
    #expect(cells.sorted() == ["a", "b", "c"])
  }

  @Test("Options of a cell: an empty list is none, and null is the default again")
  func options() throws {
    try bind("a", #"{"object":"Account/1","keyPaths":["balance"],"options":[]}"#)
    try server.set("Account/1/balance", "3")
    #expect(try stream.next().changes[0].names == ["cell", "object", "keyPath", "kind"])
    #expect(try bind("a", #"{"options":null}"#, method: "PATCH")["options"].items.count == 2)
  }

  @Test("Streams are listed, inspected and ended over JSON")
  func inspecting() throws {
    try bind("a", #"{"object":"Account/1"}"#)
    let topic = try server.subscribed("Account/1/balance")
    let list = try server.client.json("/v1/streams")["streams"].items
    #expect(list.map { $0["kind"].text } == ["cells", "object"])
    #expect(list[0]["stream"].text.map { "/v1/streams/\($0)" } == path)
    #expect(try server.client.json(path)["cells"].names == ["a"])
    #expect(list[1]["keyPaths"].json == #"["balance"]"#)
    for stream in list {
      let name = try #require(stream["stream"].text)
      #expect(try server.client.must("DELETE", "/v1/streams/\(name)").status == 204)
    }
    #expect(try topic.next().data == #"{"reason":"expired"}"#)
    #expect(try stream.events { $0.name == "bye" }.last?.id == nil)
    #expect(try Deadline().awaits { try server.client.json("/v1/status")["streams"].whole == 0 })
    #expect(try server.client.send("GET", path).problem == "unknown-stream")
  }

  @Test("A stream with cells comes back with its cells and its id, and is told what it missed")
  func resuming() throws {
    let cells = #"{"cells":{"a":{"object":"Account/1","keyPaths":["balance"]}}}"#
    let cursor = "\(server.epoch)-\(try server.revision)"
    try server.set("Account/1/balance", "1")
    try server.set("Account/1/balance", "2")
    let stream = try server.client.stream(
      "/v1/streams", ["Last-Event-ID": cursor, "Content-Type": "application/json"], method: "POST", body: cells)
    #expect(try stream.next().name == "open")
    let events = try [stream.next(), stream.next()]
    #expect(events.map { $0.changes.first?["new"].double } == [1, 2])
    #expect(events.allSatisfy { !$0.json.has("initial") })
    let reset = try server.client.stream(
      "/v1/streams?since=zz-1", ["Content-Type": "application/json"], method: "POST", body: cells)
    #expect(try [reset.next(), reset.next(), reset.next()].map(\.name) == ["open", "reset", "change"])
  }

  static let refusals: [(method: String, cell: String, body: String?, status: Int, code: String)] = [
    ("PUT", "/cells/a", #"{"object":"Account/404"}"#, 404, "unknown-object"),
    ("PUT", "/cells/a", #"{"object":"Account/1","keyPaths":["nope"]}"#, 404, "undefined-key"),
    ("PUT", "/cells/a", #"{"object":"Account/1","keyPaths":["balance."]}"#, 400, "malformed-key-path"),
    ("PUT", "/cells/a", #"{"object":"Account/1","keyPaths":[]}"#, 422, "invalid-value"),
    ("PUT", "/cells/a", #"{"object":"Account/1","options":["loud"]}"#, 422, "invalid-value"),
    ("PUT", "/cells/a", #"{"object":"Account/1","visible":1}"#, 422, "invalid-value"),
    ("PUT", "/cells/a", #"{"object":7}"#, 422, "invalid-value"),
    ("PUT", "/cells/a", #"{"subject":"Account/1"}"#, 422, "invalid-value"),
    ("PUT", "/cells/a", "[]", 422, "invalid-value"),
    ("PUT", "/cells/a%20b", #"{"object":"Account/1"}"#, 422, "invalid-value"),
    ("PATCH", "/cells/none", "{}", 404, "unknown-cell"),
    ("GET", "/cells/none", nil, 404, "unknown-cell"),
    ("DELETE", "/cells/none", nil, 404, "unknown-cell"),
    ("PUT", "/cells", "{}", 422, "invalid-value"),
    ("PUT", "x/cells/a", "{}", 404, "unknown-stream"),
    ("GET", "x", nil, 404, "unknown-stream"),
    ("DELETE", "x/cells", nil, 404, "unknown-stream"),
  ]

  @Test("Each mistake in a binding has its problem and binds nothing", arguments: refusals)
  func refused(_ method: String, _ target: String, _ body: String?, _ status: Int, _ code: String) throws {
    let response = try server.client.send(method, path + target, body: body)
    #expect(response.status == status, "\(response.text)")
    #expect(response.problem == code)
    #expect(try server.client.json(path)["cells"].names.isEmpty)
  }

  @Test("A stream has a bound on its cells")
  func bound() throws {
    let server = try TestServer { $0.streams.cells = 2 }
    let stream = try server.client.stream("/v1/streams")
    let name = try #require(stream.next().json["stream"].text)
    for (index, status) in [200, 200, 429].enumerated() {
      let response = try server.client.send("PUT", "/v1/streams/\(name)/cells/\(index)", body: "{}")
      #expect(response.status == status)
    }
  }
}
