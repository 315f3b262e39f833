import KeyValueModel
import TestKit
import Testing

/// Values that are equal by Unicode, or as numbers, but written in two ways.
@Suite("Queries compare texts by their scalars, and show numbers as they are")
struct ExactQueryTests {
  private let server: TestServer
  private let composed = "caf\u{E9}"
  private let decomposed = "cafe\u{301}"

  init() throws {
    let schema = "entities: { A: { keys: { s: { type: string }, n: { type: number } } } }"
    server = try TestServer(schema: schema, objects: [])
    try server.client.must("PUT", "/v1/objects/A/composed", body: #"{"s":"\#(composed)"}"#)
    try server.client.must("PUT", "/v1/objects/A/decomposed", body: #"{"s":"\#(decomposed)"}"#)
  }

  private func target(_ text: String) -> String { Staff.target("A", ["filter": "s == '\(text)'", "keys": "s"]) }

  private func rows(_ event: WireEvent) -> [String?] { event.json["objects"].items.map { $0["@ref"].text } }

  @Test("Two live queries whose filters are equal to Unicode alone are two, each with rows and changes of its own")
  func filters() throws {
    let streams = try [composed, decomposed].map { try server.client.stream(target($0)) }
    #expect(try streams.map { rows(try $0.next()) } == [["A/composed"], ["A/decomposed"]])
    try server.client.must("PUT", "/v1/objects/A/new", body: #"{"s":"\#(decomposed)"}"#)
    #expect(try streams[1].next().json["changes"].items.first?["object"].text == "A/new")
    try server.client.must("PUT", "/v1/objects/A/more", body: #"{"s":"\#(composed)"}"#)
    #expect(try streams[0].next().json["changes"].items.first?["object"].text == "A/more")
  }

  @Test("A page belongs to the fetch as it was written")
  func pages() throws {
    try server.client.must("PUT", "/v1/objects/A/more", body: #"{"s":"\#(composed)"}"#)
    let first = try server.client.json(target(composed) + "&limit=1")
    let page = try #require(first["next"].text)
    #expect(try server.client.must("GET", target(composed) + "&limit=1&page=\(page)").json["count"].whole == 2)
    #expect(try server.client.send("GET", target(decomposed) + "&limit=1&page=\(page)").problem == "malformed-query")
  }

  @Test("Names of cells that are equal to Unicode alone are refused like any other", arguments: ["PUT", "PATCH"])
  func cells(method: String) throws {
    let body = #"{"cells":{"\#(composed)":{},"\#(decomposed)":{}}}"#
    #expect(try server.client.send("POST", "/v1/streams", body: body).problem == "invalid-value")
    let stream = try server.client.stream("/v1/streams")
    let url = try #require(try stream.next().json["url"].text)
    #expect(try server.client.send(method, url + "/cells", body: body).problem == "invalid-value")
    #expect(try server.client.must("GET", "/healthz").status == 200)
  }

  @Test("The zeros are one section, whose name is 0; a row shows which of them it has")
  func zeros() throws {
    for (id, number) in [("1", "-0.0"), ("2", "0"), ("3", "1")] {
      try server.client.must("PUT", "/v1/objects/A/\(id)", body: #"{"n":\#(number)}"#)
    }
    let stream = try server.client.stream(
      Staff.target("A", ["filter": "n != null", "section": "n", "keys": "n"]))
    let first = try stream.next().json
    #expect(first["sections"].json == #"[{"name":0,"count":2},{"name":1,"count":1}]"#)
    try server.client.must("DELETE", "/v1/objects/A/1")
    let change = try stream.next().json
    #expect(change["sectionChanges"] == .null && change["changes"].items.first?["type"].text == "delete")
    try server.set("A/2/n", "-0.0")
    let update = try stream.next().json["changes"].items.first
    #expect(update?["type"].text == "update" && update?["keys"].json == #"["n"]"#)
    #expect(update?["value"]["n"].json == "-0.0")
  }
}
