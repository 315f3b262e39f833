import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Coming back to a stream with cells")
struct CellResumeTests {
  private static let cells = """
    {"cells":{
    "a":{"object":"Account/1","keyPaths":["balance","owner.lastName"],"options":["old","new","prior"],"context":"x"},
    "b":{"object":"Person/1","options":["new"]},
    "c":{"object":"Account/1","keyPaths":["ownerName"]},
    "d":{"object":null}}}
    """

  private func open(_ server: TestServer, since cursor: String? = nil) throws -> WireStream {
    var headers = ["Content-Type": "application/json"]
    headers["Last-Event-ID"] = cursor
    let stream = try server.client.stream("/v1/streams", headers, method: "POST", body: Self.cells)
    #expect(try stream.next().name == "open")
    return stream
  }

  @Test("A client that resumes with any id gets byte for byte what an unbroken stream got", arguments: 0..<2)
  func resumeEqualsUnbroken(_ round: Int) throws {
    var generator = SplitMix64(seed: seed)
    let server = try TestServer()
    let start = try server.revision
    let unbroken = try open(server)
    _ = try unbroken.next()
    for _ in 0..<25 {
      let number = Int.random(in: 0..<5, using: &generator)
      switch Int.random(in: 0..<5, using: &generator) {
      case 0: try server.set("Account/1/balance", "\(number)")
      case 1: try server.set("Account/1/owner", number < 2 ? "null" : "\"Person/\(number / 2)\"")
      case 2: try server.set("Person/1/lastName", "\"A\(number)\"")
      case 3: try server.set("Person/2/lastName", "\"B\(number)\"", ["Keyway-Writer": "w"])
      default:
        try server.commit(
          #"{"op":"patch","object":"Person/1","value":{"lastName":"P\#(number)","firstName":"F"}}"#,
          #"{"op":"set","object":"Account/1","keyPath":"balance","value":\#(number)}"#)
      }
    }
    try server.set("Person/1/firstName", #""end""#)
    try server.client.must("DELETE", "/v1/objects/Person/1")
    let end = try server.revision
    let events = try unbroken.events { $0.name == "gone" && $0.json["revision"].whole == end }
    for since in start..<end {
      let expected = events.filter { ($0.json["revision"].whole ?? 0) > since }
      let resumed = try open(server, since: "\(server.epoch)-\(since)")
      #expect(try expected.map { _ in try resumed.next() } == expected, "seed \(seed), since \(since)")
    }
  }

  @Test("A cell whose object was deleted meanwhile is told gone and is empty; one that was made meanwhile resets all")
  func deletedMeanwhile() throws {
    let server = try TestServer()
    let cursor = "\(server.epoch)-\(try server.revision)"
    let body = #"{"cells":{"n":{"object":"Note/1","keyPaths":["text"]}}}"#
    let headers = ["Content-Type": "application/json", "Last-Event-ID": cursor]
    try server.client.must("DELETE", "/v1/objects/Note/1")
    let stream = try server.client.stream("/v1/streams", headers, method: "POST", body: body)
    let name = try #require(stream.next().json["stream"].text)
    let gone = try stream.next()
    #expect(gone.data == #"{"revision":\#(try server.revision),"cell":"n","object":"Note/1"}"#)
    #expect(try server.client.json("/v1/streams/\(name)/cells/n")["object"].isNull)
    #expect(try server.client.json("/v1/status")["observations"].whole == 0)
    try server.client.must("PUT", "/v1/objects/Note/7", body: "{}")
    let made = try server.client.stream(
      "/v1/streams", headers, method: "POST", body: #"{"cells":{"n":{"object":"Note/7"},"a":{"object":"Account/1"}}}"#)
    #expect(try [made.next(), made.next(), made.next()].map(\.name) == ["open", "reset", "change"])
  }

  @Test("A cell that comes back hidden is told nothing until it is shown, and then the state, whatever it had shown")
  func hidden() throws {
    let server = try TestServer()
    let cursor = "\(server.epoch)-\(try server.revision)"
    try server.set("Account/1/balance", "1")
    let stream = try server.client.stream(
      "/v1/streams", ["Content-Type": "application/json", "Last-Event-ID": cursor], method: "POST",
      body: #"{"cells":{"a":{"object":"Account/1","keyPaths":["balance"],"options":["old","new"],"visible":false}}}"#)
    let name = try #require(stream.next().json["stream"].text)
    try server.set("Account/1/balance", "2")
    try server.client.must("PATCH", "/v1/streams/\(name)/cells/a", body: #"{"visible":true}"#)
    let event = try stream.next()
    #expect(event.json["initial"] == .bool(true))
    #expect(
      event.changes.map(\.json) == [
        #"{"cell":"a","object":"Account/1","keyPath":"balance","kind":"setting","new":2}"#
      ])
  }
}
