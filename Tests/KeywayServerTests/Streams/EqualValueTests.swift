import KeyValueModel
import TestKit
import Testing

@Suite("Events of values that are equal, but written in two ways")
struct EqualValueTests {
  private let server: TestServer

  init() throws {
    server = try TestServer(
      schema: """
        entities:
          Item:
            keys:
              n:     { type: number }
              calm:  { type: number, notifies: changed }
              text:  { type: string, computed: "string(calm)" }
              j:     { type: json }
              calmJ: { type: json, notifies: changed }
              set:   { toMany: json }
              items: { toMany: Item, ordered: true }
              least: { type: number, computed: items.@min.n }
              great: { type: number, computed: items.@max.n }
              most:  { type: string, computed: "string(great)" }
        """,
      objects: [("Item/1", #"{"n":0,"calm":0,"j":100,"calmJ":100}"#), ("Item/2", #"{"n":0,"items":["Item/1"]}"#)])
  }

  private func get(_ path: String) throws -> String { try server.client.must("GET", "/v1/objects/\(path)").text }

  @Test("The least and the greatest are told as they are read, whatever sign a zero gets")
  func zeros() throws {
    let paths = ["items.@min.n", "items.@max.n", "least", "most"]
    let target = "/v1/objects/Item/2/\(paths.joined(separator: ","))?options=old,new,initial"
    let stream = try server.client.stream(target)
    var values: [String: Value] = [:]
    func hear(_ event: WireEvent) throws {
      for change in event.changes {
        let path = change["keyPath"].text ?? ""
        if !event.json.has("initial") { #expect(change["old"].json == values[path]?.json) }
        values[path] = change["new"]
      }
      for path in paths { #expect(try get("Item/2/\(path)") == (values[path]?.json ?? "") + "\n") }
    }
    try hear(stream.next())
    var cursor: String?
    for number in ["-0.0", "7", "-0.0", "0"] {
      try server.set("Item/1/n", number)
      let event = try stream.next()
      try hear(event)
      // Resumed from the event before, a stream gets the same event.
      if let cursor {
        #expect(try server.client.stream(target, ["Last-Event-ID": cursor]).next().withoutRetry == event.withoutRetry)
      }
      cursor = event.id
    }
    try server.client.must("PUT", "/v1/objects/Item/3", body: #"{"n":-0.0}"#)
    try server.client.must("POST", "/v1/objects/Item/2/items", body: #""Item/3""#)
    try hear(stream.next())
    try server.client.must("DELETE", "/v1/objects/Item/2/items?object=Item/1")
    try hear(stream.next())
  }

  @Test("A key that notifies if changed tells a zero of the other sign, and no number that JSON has alike")
  func changed() throws {
    let stream = try server.client.stream("/v1/objects/Item/1/calm,text,calmJ?options=old,new")
    for json in ["100.0", "1e2", "100"] { try server.set("Item/1/calmJ", json) }
    try server.set("Item/1/calm", "-0.0")
    #expect(
      try stream.next().changes.map { "\($0["keyPath"].text ?? "") \($0["old"].json) \($0["new"].json)" } == [
        #"text "0" "-0""#, "calm 0 -0.0",
      ])
    #expect(try get("Item/1/text") == "\"-0\"\n")
  }

  @Test("A row whose number is written as it was has not changed")
  func rows() throws {
    let stream = try server.client.stream("/v1/objects/Item?filter=n+==+0.0+%26%26+j+!=+null&keys=j")
    #expect(try stream.next().json["count"].whole == 1)
    try server.set("Item/1/j", "100.0")
    try server.set("Item/1/j", "101.0")
    #expect(try stream.next().json["changes"].items.map { $0["value"]["j"].json } == ["101"])
  }

  @Test("A removed member is sent as it was stored, not as the request names it", arguments: ["operation", "value"])
  func removal(by way: String) throws {
    try server.set("Item/1/set", #"[{"a":1,"b":2}]"#)
    let stream = try server.client.stream("/v1/objects/Item/1/set?options=old")
    if way == "operation" {
      try server.client.must("POST", "/v1/objects/Item/1/set?operation=minus", body: #"[{"b":2,"a":1}]"#)
    } else {
      try server.commit(#"{"op":"remove","object":"Item/1","keyPath":"set","value":[{"b":2,"a":1}]}"#)
    }
    #expect(try stream.next().changes.map { $0["old"].json } == [#"[{"a":1,"b":2}]"#])
  }

  @Test("Members of a json collection are unique as they are written, so that what was read can be sent back")
  func members() throws {
    let body = #"{"set":[1,1.0,{"a":1},{"a":1.0},-0.0]}"#
    try server.client.must("PUT", "/v1/objects/Item/5", body: body)
    let read = try get("Item/5/set")
    #expect(read == "[-0.0,1,{\"a\":1}]\n")
    #expect(try server.client.must("PUT", "/v1/objects/Item/5/set", body: read).text == read)
  }

  @Test("Numbers that are written alike make one section, with all its rows in its aggregates")
  func sections() throws {
    for (number, value) in ["1", "1.0", "0", "-0.0", #"{"a":1}"#, #"{"a":1.0}"#].enumerated() {
      try server.client.must("PUT", "/v1/objects/Item/s\(number)", body: #"{"j":\#(value),"n":\#(number)}"#)
    }
    let target =
      "Item?section=j&aggregate=@count,@max.n&keys=n&filter=j%20!%3D%20null%20%26%26%20j%20!%3D%20100"
    let stream = try server.client.stream("/v1/objects/\(target)")
    let expected =
      #"[{"name":0,"count":2,"aggregates":{"@count":2,"@max.n":3}},"#
      + #"{"name":1,"count":2,"aggregates":{"@count":2,"@max.n":1}},"#
      + #"{"name":{"a":1},"count":2,"aggregates":{"@count":2,"@max.n":5}}]"#
    #expect(try stream.next().json["sections"].json == expected)
    #expect(try server.client.must("GET", "/v1/objects/\(target)").json["sections"].json == expected)
  }
}
