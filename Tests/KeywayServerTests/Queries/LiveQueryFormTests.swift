import KeyValueModel
import KeywayClient
import TestKit
import Testing

@Suite("A live query's URL and bindings in all their forms")
struct LiveQueryFormTests {
  @Test("The URL of a stream reads as JSON too, in the same order")
  func bothForms() throws {
    let server = try Staff.server()
    let parameters: KeyValuePairs = [
      "filter": "salary > 0", "sort": "-salary", "section": "department.name", "keys": "salary", "context": "c",
      "overflow": "disconnect",
    ]
    let target = Staff.target("Employee", parameters)
    let fetched = try server.client.json(target)["objects"].items.compactMap { $0["@ref"].text }
    let streamed = try server.client.stream(target).next().json["objects"].items.compactMap { $0["@ref"].text }
    #expect(fetched.count > 2)
    #expect(fetched == streamed)
  }

  @Test("A path that a sort names again has no say, and there are at most 32")
  func longSort() throws {
    let server = try Staff.server()
    let twice = try server.client.json(Staff.target("Employee", ["sort": "salary,-salary,name,salary"]))["objects"]
    let once = try server.client.json(Staff.target("Employee", ["sort": "salary,name"]))["objects"]
    #expect(twice == once)
    let names = (1...33).map { "k\($0)" }
    let keys = names.map { "\($0): {type: integer}" }.joined(separator: ", ")
    let wide = try TestServer(schema: "entities: {A: {keys: {\(keys)}}}", objects: [])
    let response = try wide.client.send("GET", Staff.target("A", ["sort": names.joined(separator: ",")]))
    #expect(response.problem == "malformed-key-path")
    let sort = names.dropLast().joined(separator: ",")
    #expect(try wide.client.send("GET", Staff.target("A", ["sort": sort])).status == 200)
  }

  @Test("A section's name does not depend on which of several equal JSON values came first")
  func sectionNames() throws {
    let server = try TestServer(schema: "entities: {A: {keys: {j: {type: json}, x: {type: integer}}}}", objects: [])
    try server.client.must("PUT", "/v1/objects/A/1", body: #"{"j":{"b":1,"a":[{"d":1,"c":2}]}}"#)
    try server.client.must("PUT", "/v1/objects/A/2", body: #"{"j":{"a":[{"c":2,"d":1}],"b":1}}"#)
    let event = try server.client.stream(Staff.target("A", ["section": "j"])).next()
    #expect(event.json["sections"].json == #"[{"name":{"a":[{"c":2,"d":1}],"b":1},"count":2}]"#)
  }

  @Test("A query cell that was bound off screen counts what is pending")
  func pendingOfHidden() throws {
    let server = try Staff.server()
    let screen = try CellScreen(server)
    try screen.bind("q", #"{"entity":"Employee","keys":["salary"],"visible":false}"#)
    try server.set("Employee/1/salary", "77")
    try server.set("Employee/1/salary", "78")
    #expect(try screen.cell("q")["pending"].whole == 2)
    try screen.patch("q", #"{"visible":true}"#)
    #expect(try screen.stream.next().name == "results")
    #expect(try screen.cell("q")["pending"].whole == 0)
  }

  @Test("A cell that is given a query forgets what it was told to observe of an object; a limit may be written 5.0")
  func leftovers() throws {
    let server = try Staff.server()
    let screen = try CellScreen(server)
    try screen.bind("a", #"{"object":"Employee/1","keyPaths":["name"],"options":["new"]}"#)
    try screen.patch("a", #"{"object":null}"#)
    try screen.patch("a", #"{"entity":"Employee","keys":["name"],"limit":1.0}"#)
    #expect(try screen.cell("a")["limit"].whole == 1)
    #expect(try screen.stream.next().name == "results")
  }
}
