import KeyValueModel
import TestKit
import Testing

@Suite("httpx-sse")
struct HttpxTests {
  private let server: ServerProcess

  init() throws { server = try ServerProcess() }

  private func read(_ method: String, _ target: String, _ body: String...) throws -> ChildProcess {
    try ChildProcess.start(PackageFolder.python, [PackageFolder.script("sse.py"), method, server.url + target] + body)
  }

  private func events(_ child: ChildProcess, _ count: Int) throws -> [Value] {
    try child.lines(count).map { try Value(json: $0) }
  }

  private func news(_ events: [Value]) -> [String] {
    events.flatMap { $0["data"]["changes"].items }.map { $0["new"].json }
  }

  @Test("It reads a stream of key paths and a stream of an object to its gone")
  func ofOneObject() throws {
    let paths = try read("GET", "/v1/objects/Account/1/balance,owner.lastName")
    let object = try read("GET", "/v1/objects/Note/1")
    #expect(try news(events(paths, 1)) == ["100", #""Lovelace""#])
    _ = try events(object, 1)
    try server.set("Person/7/lastName", #""Byron – “ü”""#)
    try server.set("Account/1/balance", "1")
    try server.client.must("DELETE", "/v1/objects/Note/1")
    let told = try events(paths, 3)
    #expect(news(told).suffix(2) == [#""Byron – “ü”""#, "1"])
    #expect(told.allSatisfy { $0["event"].text == "change" })
    let epoch = try #require(server.status["epoch"].text)
    #expect(told[2]["id"].text == "\(epoch)-\(try server.revision - 1)")
    let last = try events(object, 3)
    #expect(last.map { $0["event"].text } == ["change", "gone", "END"])
    #expect(try object.exitStatus() == 0)
  }

  @Test("It reads a stream of cells: bound, bound anew, reused, hidden, shown, emptied by deletion, ended")
  func ofCells() throws {
    let child = try read(
      "POST", "/v1/streams",
      #"{"cells":{"a":{"object":"Account/1","keyPaths":["balance"],"options":["initial","old","new"]}}}"#)
    let name = try #require(events(child, 2).first?["data"]["stream"].text)
    let cell = "/v1/streams/\(name)/cells/a"
    try server.set("Account/1/balance", "1")
    try server.client.must("PATCH", cell, body: #"{"object":"Account/2"}"#)
    try server.set("Account/1/balance", "2")
    try server.client.must("PATCH", cell, body: #"{"object":null}"#)
    try server.set("Account/2/balance", "3")
    try server.client.must("PATCH", cell, body: #"{"object":"Account/1"}"#)
    try server.client.must("PATCH", cell, body: #"{"visible":false}"#)
    try server.set("Account/1/balance", "4")
    try server.set("Account/1/balance", "5")
    try server.client.must("PATCH", cell, body: #"{"visible":true}"#)
    try server.client.must("PUT", "/v1/streams/\(name)/cells/b", body: #"{"object":"Note/1"}"#)
    try server.client.must("DELETE", "/v1/objects/Note/1")
    try server.client.must("DELETE", cell)
    try server.set("Account/1/balance", "6")
    try server.client.must("DELETE", "/v1/streams/\(name)")
    let told = try events(child, 10)
    #expect(
      told.map { $0["event"].text } == [
        "open", "change", "change", "change", "change", "change", "change", "gone", "bye", "END",
      ])
    #expect(news(Array(told[1...5])) == ["100", "1", "40", "2", "5"])
    #expect(told[5]["data"]["changes"][0]["old"].double == 2)
    #expect(told[5]["data"]["changes"][0]["coalesced"].whole == 2)
    #expect(told[7]["data"]["cell"].text == "b")
    #expect(told[8]["data"]["reason"].text == "expired")
    #expect(try child.exitStatus() == 0)
    #expect(try server.hasNoStreams())
  }
}
