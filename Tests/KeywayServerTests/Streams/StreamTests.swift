import HTTPServer
import KeyValueModel
import TestKit
import Testing

@testable import KeywayServer

@Suite("Streams of one object")
struct StreamTests {
  @Test("The head says what proxies and browsers need, and the first block has a jittered retry and the whole state")
  func beginning() throws {
    let server = try TestServer()
    var retries: Set<String> = []
    for _ in 0..<4 {
      let stream = try server.client.stream("/v1/objects/Account/1/balance,owner.lastName")
      #expect(stream.head["Content-Type"] == "text/event-stream; charset=utf-8")
      #expect(stream.head["Cache-Control"] == "no-store, no-transform")
      #expect(stream.head["X-Accel-Buffering"] == "no")
      let revision = try server.revision
      let first = try #require(try stream.block())
      retries.insert(try #require(first.retry))
      #expect(
        first.withoutRetry.text == """
          id: \(server.epoch)-\(revision)
          event: change
          data: {"revision":\(revision),"initial":true,"changes":[\
          {"object":"Account/1","keyPath":"balance","kind":"setting","new":100},\
          {"object":"Account/1","keyPath":"owner.lastName","kind":"setting","new":"Lovelace"}]}
          """)
    }
    #expect(retries.count > 1)
    #expect(retries.allSatisfy { Int($0).map { (1000...5000).contains($0) } ?? false })
  }

  @Test("A whole object observes its display keys")
  func displayKeys() throws {
    let server = try TestServer()
    let stream = try server.client.stream("/v1/objects/Account/1")
    #expect(try stream.next().changes.map { $0["keyPath"].text } == ["balance", "ownerName"])
    try server.set("Person/1/lastName", #""Byron""#)
    #expect(try stream.next().changes.map { $0["new"].text } == ["Byron"])
  }

  struct Payload: Sendable, CustomTestStringConvertible {
    let options: String?
    let initial: [String]?
    let changes: [String]
    var testDescription: String { options ?? "default" }
  }

  static let setting = #"{"object":"Account/1","keyPath":"balance","kind":"setting""#
  static let payloads = [
    Payload(options: nil, initial: [#","new":100}"#], changes: [#","new":120}"#]),
    Payload(options: "none", initial: nil, changes: ["}"]),
    Payload(options: "new", initial: nil, changes: [#","new":120}"#]),
    Payload(options: "old", initial: nil, changes: [#","old":100}"#]),
    Payload(options: "old,new", initial: nil, changes: [#","old":100,"new":120}"#]),
    Payload(options: "initial", initial: ["}"], changes: ["}"]),
    Payload(options: "prior", initial: nil, changes: [#","prior":true}"#, "}"]),
    Payload(options: "prior,old", initial: nil, changes: [#","prior":true,"old":100}"#, #","old":100}"#]),
    Payload(options: "prior,new", initial: nil, changes: [#","prior":true}"#, #","new":120}"#]),
    Payload(
      options: "new,old,initial,prior", initial: [#","new":100}"#],
      changes: [#","prior":true,"old":100}"#, #","old":100,"new":120}"#]),
  ]

  @Test(
    "Each option puts into the payload what the table of the specification says, and nothing else", arguments: payloads)
  func options(_ payload: Payload) throws {
    let server = try TestServer()
    let query = payload.options.map { "?options=\($0)" } ?? ""
    let stream = try server.client.stream("/v1/objects/Account/1/balance\(query)")
    if let initial = payload.initial {
      let changes = initial.map { Self.setting + $0 }.joined(separator: ",")
      #expect(try stream.next().data == #"{"revision":\#(try server.revision),"initial":true,"changes":[\#(changes)]}"#)
    }
    try server.set("Account/1/balance", "120")
    let changes = payload.changes.map { Self.setting + $0 }.joined(separator: ",")
    #expect(try stream.next().data == #"{"revision":\#(try server.revision),"changes":[\#(changes)]}"#)
  }

  @Test("Null is told as null, and what was not asked for is not there")
  func nullIsNotAbsent() throws {
    let server = try TestServer()
    let stream = try server.client.stream("/v1/objects/Account/1/balance?options=new")
    try server.client.must("DELETE", "/v1/objects/Account/1/balance")
    #expect(try stream.next().changes.map(\.json) == [Self.setting + #","new":null}"#])
  }

  @Test("A context comes back in every change, as it was given")
  func context() throws {
    let server = try TestServer()
    let stream = try server.client.stream("/v1/objects/Account/1/balance?context=row%207%20%22%C3%BC%22")
    #expect(try stream.next().changes.first?["context"].text == "row 7 \"ü\"")
    try server.set("Account/1/balance", "1")
    #expect(try stream.next().changes.first?["context"].text == "row 7 \"ü\"")
  }

  @Test("A path follows when its middle object is replaced: once, with the old read through the old middle")
  func middleObject() throws {
    let server = try TestServer()
    let stream = try server.client.stream("/v1/objects/Account/1/owner.lastName?options=old,new")
    try server.set("Account/1/owner", #""Person/2""#)
    try server.set("Person/1/lastName", #""Detached""#)
    try server.set("Person/2/lastName", #""Live""#)
    try server.set("Account/1/owner", #""Person/2""#)
    try server.set("Account/1/owner", "null")
    let changes = try (0..<4).flatMap { _ in try stream.next().changes }
    #expect(changes.map { $0["old"].json } == [#""Lovelace""#, #""Somerville""#, #""Live""#, #""Live""#])
    #expect(changes.map { $0["new"].json } == [#""Somerville""#, #""Live""#, #""Live""#, "null"])
  }

  @Test("Equal values are told, unless the key says changed")
  func equalValues() throws {
    let server = try TestServer()
    let stream = try server.subscribed("Account/1/balance,visits")
    try server.set("Account/1/balance", "100")
    try server.set("Account/1/visits", "null")
    #expect(try stream.next().changes.map { $0["keyPath"].text } == ["visits"])
  }

  @Test("A computed key is told when anything that it reads is, also over two objects")
  func computed() throws {
    let server = try TestServer()
    let stream = try server.subscribed("Employee/1/headName")
    try server.set("Department/1/head", #""Employee/1""#)
    try server.set("Employee/1/lastName", #""X""#)
    try server.set("Employee/1/department", "null")
    #expect(try (0..<3).map { _ in try stream.next().changes[0]["new"].json } == [#""Clement""#, #""X""#, "null"])
  }

  @Test("Identical streams are two, and one's options never shape the other's payload")
  func identicalStreams() throws {
    let server = try TestServer()
    let streams = try (0..<3).map { index in
      try server.client.stream("/v1/objects/Account/1/balance?options=\(index == 2 ? "old" : "new")")
    }
    #expect(try server.client.json("/v1/status")["observations"].whole == 3)
    try server.set("Account/1/balance", "1")
    let changes = try streams.map { try $0.next().changes[0].json }
    #expect(changes == [#","new":1}"#, #","new":1}"#, #","old":100}"#].map { Self.setting + $0 })
  }

  @Test("No text of a client ends a line of an event or of the journal, however a reader splits them")
  func lineBreaks() throws {
    let server = try TestServer()
    let text = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\u{1c}g\rh\ni"
    let old = try server.revision
    let context = "x%E2%80%A8y%C2%85z"
    let stream = try server.client.stream("/v1/objects/Note/1/text?context=\(context)")
    let query = try server.client.stream("/v1/objects/Note?context=\(context)")
    let journal = try server.client.stream("/v1/journal?since=\(server.epoch)-\(old)")
    for stream in [stream, query] { _ = try stream.next() }
    try server.set("Note/1/text", Value.string(text).json)
    let change = try stream.next()
    #expect(change.changes.first?["new"].text == text && change.changes.first?["context"].text == "x\u{2028}y\u{85}z")
    let lines = try server.client.must("GET", "/v1/journal?since=\(server.epoch)-\(old)").text
    let texts = try [change.text, query.next().text, journal.next().text, lines]
    for text in texts {
      #expect(text.contains("a\\u2028b\\u2029c\\u0085d"), "\(text)")
      #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || !$0.properties.isWhitespace || $0 == " " }, "\(text)")
    }
    #expect(try server.client.json("/v1/objects/Note/1/text").text == text)
  }

  @Test("gone has the context of its observations, also when it is replayed")
  func goneWithContext() throws {
    let server = try TestServer()
    let target = "/v1/objects/Note/1?context=c%22"
    let cursor = "\(server.epoch)-\(try server.revision)"
    let live = try server.client.stream(target)
    _ = try live.next()
    try server.client.must("DELETE", "/v1/objects/Note/1")
    let data = #"{"revision":\#(try server.revision),"object":"Note/1","context":"c\""}"#
    #expect(try live.next().data == data)
    #expect(try server.client.stream(target + "&since=\(cursor)").next().data == data)
  }

  @Test("gone ends the stream with a whole response, and the object is 404 afterwards")
  func gone() throws {
    let server = try TestServer()
    let stream = try server.subscribed("Note/1")
    try server.client.must("DELETE", "/v1/objects/Note/1", ["Keyway-Writer": "w"])
    let events = try stream.rest()
    let revision = try server.revision
    #expect(
      events.map(\.text) == [
        """
        id: \(server.epoch)-\(revision)
        event: gone
        data: {"revision":\(revision),"writer":"w","object":"Note/1"}
        """
      ])
    #expect(stream.isComplete)
    #expect(throws: LoopbackError.self) { try server.client.stream("/v1/objects/Note/1") }
    #expect(try Deadline().awaits { try server.client.json("/v1/status")["streams"].whole == 0 })
  }

  @Test("A silent stream gets heartbeats, and their id is that of the newest commit")
  func heartbeat() throws {
    let server = try TestServer {
      $0.server.heartbeatSeconds = 1
      $0.streams.heartbeatSeconds = 1
    }
    let stream = try server.subscribed("Account/1/balance")
    try server.set("Account/2/balance", "1")
    let revision = try server.revision
    let expected = "id: \(server.epoch)-\(revision)\nevent: heartbeat\ndata: {\"revision\":\(revision)}"
    let isTold = try Deadline().awaits { try stream.block()?.text == expected }
    #expect(isTold)
  }

  static let refusals: [(target: String, status: Int, code: String)] = [
    ("Account/1/balance?options=loud", 400, "malformed-query"),
    ("Account/1/balance?options=none,new", 400, "malformed-query"),
    ("Account/1/balance?keys=balance", 400, "malformed-query"),
    ("Account/1/nope", 404, "undefined-key"),
    ("Account/1/balance..x", 400, "malformed-key-path"),
    ("Account/404", 404, "unknown-object"),
    ("Planet/1", 404, "unknown-entity"),
    ("Account/1/\(repeatElement("balance", count: 65).joined(separator: ","))", 429, "too-many-key-paths"),
  ]

  @Test("A stream that cannot be is refused before anything is registered", arguments: refusals)
  func refused(_ target: String, _ status: Int, _ code: String) throws {
    let server = try TestServer()
    let response = try server.client.send("GET", "/v1/objects/\(target)", ["Accept": "text/event-stream"])
    #expect(response.status == status, "\(response.text)")
    #expect(response.problem == code)
    #expect(try server.client.json("/v1/status")["streams"].whole == 0)
  }
}

@Suite("Names of streams") struct StreamNamesTests {
  @Test("A name says which node made it; what no node makes has no maker, and goes into no request to one")
  func makers() {
    let mark = NodeMark(of: "http://127.0.0.1:8080")
    let names = StreamNames(mark: mark.text) { 7 }
    for number in [1, 35, 36, UInt64(Int64.max)] {
      let name = names.text(of: StreamID(number))
      #expect(StreamNames.maker(of: name) == mark && names.id(of: name) == StreamID(number))
      for strange in [
        name + "0", String(name.dropLast()), name.uppercased(), name + " ", " " + name, String(name.dropFirst()),
        name.replacing("-", with: "/"), name.replacing("-", with: "\r\n"), mark.text + name.drop { $0 != "-" },
        "ä" + name.dropFirst(), name.dropLast() + "g", "",
      ] where strange != name {
        #expect(StreamNames.maker(of: strange).map { $0 != mark } ?? true, "\(strange)")
        #expect(names.id(of: strange) == nil)
      }
      #expect(StreamNames.maker(of: name + "0") == nil && StreamNames.maker(of: name.replacing("-", with: "\n")) == nil)
    }
  }
}
