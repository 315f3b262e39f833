import KeyValueModel
import KeywayClient
import KeywayServer
import TestKit
import Testing

@Suite("A live query as a stream")
struct LiveQueryTests {
  let server: TestServer

  init() throws {
    server = try Staff.server()
  }

  private static func row(_ reference: String, _ revision: Int, _ members: String) -> String {
    #"{"@ref":"\#(reference)","@revision":\#(revision),\#(members)}"#
  }

  @Test("The first event is results: the head, all rows with the keys asked for, an id and retry")
  func results() throws {
    let stream = try server.client.stream(
      Staff.target("Employee", ["filter": "salary > 10", "sort": "-salary", "keys": "salary,name"]))
    #expect(stream.head["Content-Type"] == "text/event-stream; charset=utf-8")
    #expect(stream.head["Cache-Control"] == "no-store, no-transform")
    let event = try stream.next()
    #expect(event.lines.first?.hasPrefix("retry: ") == true)
    let rows = [
      Self.row("Employee/1", 3, #""name":"Ada","salary":30"#), Self.row("Employee/3", 5, #""name":"Cy","salary":20"#),
      Self.row("Employee/4", 6, #""name":"Di","salary":15"#), Self.row("Manager/5", 7, #""name":"Eve","salary":12"#),
    ]
    #expect(
      event.withoutRetry.text == """
        id: \(server.epoch)-7
        event: results
        data: {"revision":7,"initial":true,"count":4,"total":4,"objects":[\(rows.joined(separator: ","))]}
        """)
  }

  @Test("One commit is one content, with every sort of change, as the specification shows it")
  func content() throws {
    let stream = try server.client.stream(
      Staff.target("Employee", ["filter": "salary > 10", "sort": "-salary", "keys": "salary,name", "context": "c"]))
    #expect(try stream.next().json["context"].text == "c")
    try server.client.must(
      "POST", "/v1/transactions", ["Keyway-Writer": "w"],
      body: """
        {"operations":[{"op":"set","object":"Employee/3","keyPath":"salary","value":40},
        {"op":"set","object":"Employee/4","keyPath":"salary","value":5},{"op":"delete","object":"Manager/5"},
        {"op":"set","object":"Employee/2","keyPath":"salary","value":35},
        {"op":"create","object":"Employee/9","value":{"name":"Gil","salary":11}},
        {"op":"set","object":"Employee/1","keyPath":"name","value":"Adah"}]}
        """)
    let changes = [
      #"{"type":"delete","object":"Employee/4","index":2,"reason":"left"}"#,
      #"{"type":"delete","object":"Manager/5","index":3,"reason":"deleted"}"#,
      #"{"type":"move","object":"Employee/3","index":1,"newIndex":0,"keys":["salary"],"value":"#
        + Self.row("Employee/3", 8, #""name":"Cy","salary":40"#) + "}",
      #"{"type":"insert","object":"Employee/2","newIndex":1,"reason":"entered","value":"#
        + Self.row("Employee/2", 8, #""name":"Bob","salary":35"#) + "}",
      #"{"type":"insert","object":"Employee/9","newIndex":3,"reason":"created","value":"#
        + Self.row("Employee/9", 8, #""name":"Gil","salary":11"#) + "}",
      #"{"type":"update","object":"Employee/1","index":0,"newIndex":2,"keys":["name"],"value":"#
        + Self.row("Employee/1", 8, #""name":"Adah","salary":30"#) + "}",
    ]
    let text = changes.joined(separator: ",")
    #expect(
      try stream.next().text == """
        id: \(server.epoch)-8
        event: content
        data: {"revision":8,"writer":"w","context":"c","count":4,"total":4,"changes":[\(text)]}
        """)
  }

  @Test("Sections come in ascending order, null first; they come and go with their rows")
  func sections() throws {
    let stream = try server.client.stream(
      Staff.target("Employee", ["section": "department.name", "sort": "-salary", "keys": "name"]))
    let results = try stream.next()
    #expect(
      results.json["sections"].json
        == #"[{"name":null,"count":1},{"name":"Engines","count":2},{"name":"Looms","count":2}]"#)
    #expect(
      results.json["objects"].items.map { $0["@ref"].text } == [
        "Employee/4", "Employee/1", "Employee/3", "Manager/5", "Employee/2",
      ])
    try server.set("Employee/4/department", #""Department/2""#)
    let moved = try stream.next().json
    #expect(moved["sectionChanges"].json == #"[{"type":"delete","name":null,"index":0}]"#)
    #expect(moved["changes"].items.map { $0["index"].json } == ["[0,0]"])
    #expect(moved["changes"].items.map { $0["newIndex"].json } == ["[1,0]"])
    #expect(moved["changes"][0]["keys"].json == "[]")
    // A renamed section is removed and inserted, and its rows move.
    try server.set("Department/1/name", #""Zinc""#)
    let renamed = try stream.next().json
    #expect(
      renamed["sectionChanges"].json
        == #"[{"type":"insert","name":"Zinc","newIndex":1},{"type":"delete","name":"Engines","index":0}]"#)
    #expect(renamed["changes"].items.map { $0["newIndex"].json } == ["[1,0]", "[1,1]"])
    #expect(Set(renamed["changes"].items.map { $0["type"].text }) == ["move"])
    #expect(renamed["count"].whole == 5)
  }

  @Test("The window of a limit is kept full, and rows slide in and out at its end")
  func window() throws {
    let stream = try server.client.stream(Staff.target("Employee", ["sort": "salary", "limit": "2", "keys": "salary"]))
    var list = LiveList()
    try list.apply(stream.next())
    #expect(list.names == ["Employee/2", "Manager/5"])
    try server.client.must("DELETE", "/v1/objects/Employee/2")
    let slid = try stream.next()
    #expect(slid.json["changes"].items.map { $0["reason"].text } == ["deleted", "entered"])
    try list.apply(slid)
    #expect(list.names == ["Manager/5", "Employee/4"])
    try server.client.must("PUT", "/v1/objects/Employee/8", body: "{}")
    let pushed = try stream.next()
    #expect(pushed.json["changes"].items.map { $0["reason"].text } == ["left", "created"])
    try list.apply(pushed)
    // null comes first.
    #expect(list.names == ["Employee/8", "Manager/5"])
    #expect(pushed.json["count"].whole == 2)
    // Changes below the window are not sent.
    try server.set("Employee/1/salary", "99")
    try server.set("Manager/5/salary", "13")
    #expect(try stream.next().json["revision"].whole == (try server.revision))
  }

  @Test("Commits that change nothing of what is shown are not told")
  func netNothing() throws {
    let stream = try server.client.stream(Staff.target("Employee", ["filter": "salary > 10", "keys": "salary"]))
    _ = try stream.next()
    try server.set("Employee/1/salary", "30")
    try server.set("Employee/1/name", #""A""#)
    try server.set("Employee/2/salary", "5")
    try server.commit(
      #"{"op":"set","object":"Employee/1","keyPath":"salary","value":1}"#,
      #"{"op":"set","object":"Employee/1","keyPath":"salary","value":30}"#)
    try server.commit(
      #"{"op":"create","object":"Employee/8","value":{"salary":70}}"#, #"{"op":"delete","object":"Employee/8"}"#)
    try server.set("Employee/1/salary", "31")
    #expect(try stream.next().json["revision"].whole == (try server.revision))
  }

  @Test("An object that is deleted and created again in one commit is the same row")
  func remade() throws {
    let stream = try server.client.stream(Staff.target("Employee", ["filter": "salary > 10", "keys": "salary"]))
    _ = try stream.next()
    try server.commit(
      #"{"op":"delete","object":"Employee/1"}"#, #"{"op":"create","object":"Employee/1","value":{"salary":31}}"#)
    #expect(try stream.next().json["changes"].items.map { $0["type"].text } == ["update"])
  }

  @Test("A query reads through paths and computed keys: far changes move its rows")
  func far() throws {
    let stream = try server.client.stream(
      Staff.target("Department", ["filter": "total > 20.0", "sort": "-total", "keys": "total"]))
    #expect(try stream.next().json["objects"].items.map { $0["total"].double } == [50, 22])
    try server.set("Employee/2/salary", "100")
    #expect(try stream.next().json["changes"].items.map { $0["type"].text } == ["move"])
    try server.set("Employee/2/department", #""Department/1""#)
    #expect(
      try stream.next().json["changes"].items.map { $0["type"].text } == ["delete", "update"])
  }

  @Test("The same URL answers JSON with the rows that its stream shows; HEAD with the stream's head alone")
  func negotiation() throws {
    let target = Staff.target("Employee", ["filter": "salary > 10", "sort": "-salary", "limit": "3"])
    let fetched = try server.client.must("GET", target)
    #expect(fetched["Content-Type"]?.hasPrefix("application/json") == true)
    let results = try server.client.stream(target).next()
    #expect(fetched.json["objects"].json == results.json["objects"].json)
    #expect(fetched.json["count"].whole == 4)
    #expect(results.json["count"].whole == 3)
    let head = try server.client.send("HEAD", target, ["Accept": "text/event-stream"])
    #expect(head.status == 200)
    #expect(head["Content-Type"] == "text/event-stream; charset=utf-8" && head["Content-Length"] == nil)
    #expect(try server.client.send("GET", target, ["Accept": "text/html"]).status == 406)
    #expect(try Deadline().awaits { try server.client.json("/v1/status")["streams"].whole == 0 })
  }

  @Test("Streams of one query are told the same; each has its own context")
  func twins() throws {
    let target = Staff.target("Employee", ["filter": "salary > 10"])
    let streams = try ["", "&context=a", "&context=b", ""].map { try server.client.stream(target + $0) }
    let first = try streams.map { try $0.next().withoutRetry }
    #expect(first[0] == first[3])
    #expect(first.map { $0.json["context"].text } == [nil, "a", "b", nil])
    try server.set("Employee/1/salary", "3")
    let second = try streams.map { try $0.next() }
    #expect(second[0] == second[3])
    #expect(second.map { $0.json["context"].text } == [nil, "a", "b", nil])
    #expect(Set(second.map { $0.json["changes"].json }).count == 1)
  }

  @Test("A thousand streams of one query are counted, hear of one commit, and leave nothing behind")
  func crowd() throws {
    let target = Staff.target("Employee", ["filter": "salary > 10"])
    var streams = try (0..<1000).map { _ in try server.client.stream(target) }
    for stream in streams { _ = try stream.next() }
    #expect(try server.client.json("/v1/status")["streams"].whole == 1000)
    #expect(try server.client.json("/v1/status")["observations"].whole == 1000)
    try server.set("Employee/1/salary", "3")
    #expect(Set(try streams.map { try $0.next().text }).count == 1)
    for stream in streams { stream.socket.close() }
    streams = []
    #expect(
      try Deadline().awaits {
        let status = try server.client.json("/v1/status")
        return status["streams"].whole == 0 && status["observations"].whole == 0
      })
    #expect(server.openQueries == 0)
    #expect(try server.client.json("/v1/streams")["streams"].items.isEmpty)
  }

  @Test("A stream of a query is listed with its query, and ended over JSON")
  func inspecting() throws {
    let stream = try server.client.stream(
      Staff.target("Employee", ["filter": "salary > 10", "limit": "2", "keys": "name", "context": "c"]))
    _ = try stream.next()
    let listed = try server.client.json("/v1/streams")["streams"][0]
    #expect(listed["kind"].text == "query")
    #expect(listed["filter"].text == "salary > 10")
    #expect(listed["limit"].whole == 2)
    #expect(listed["context"].text == "c")
    try server.client.must("DELETE", "/v1/streams/\(try #require(listed["stream"].text))")
    #expect(try stream.next().data == #"{"reason":"expired"}"#)
  }
}
