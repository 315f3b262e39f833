import KeywayServer
import TestKit
import Testing

@Suite("Coming back after a bracket around nothing")
struct BracketResumeTests {
  private static let schema = """
    entities:
      A:
        keys:
          n: { type: integer }
          m: { type: integer, notifies: manual }
          sum: { type: integer, computed: n + m }
          peer: { toOne: A }
    """

  /// The keys of empty brackets, one for each transaction.
  private static let bracketed = ["m", "n", "peer", "m"]

  private func server() throws -> TestServer {
    let server = try TestServer(
      schema: Self.schema,
      objects: [("A/1", #"{"n":1,"m":1}"#), ("A/2", #"{"n":1,"m":1,"peer":"A/1"}"#)])
    try server.set("A/1/m", "5")
    return server
  }

  private func bracket(_ server: TestServer) throws {
    for key in Self.bracketed {
      let named = #""object":"A/1","key":"\#(key)""#
      try server.commit(#"{"op":"willChange",\#(named)}"#, #"{"op":"didChange",\#(named)}"#)
    }
  }

  @Test(
    "A stream of key paths that resumes is told of it as an unbroken one was",
    arguments: ["A/1/m", "A/1/sum", "A/1/n,peer", "A/2/peer.m,peer.sum", "A/1"])
  func keyPaths(_ target: String) throws {
    let server = try server()
    let path = "/v1/objects/\(target)?options=old,new,prior"
    let start = try server.revision
    let unbroken = try server.client.stream(path)
    try bracket(server)
    let named = #""object":"A/1","key":"m""#
    try server.commit(
      #"{"op":"set","object":"A/1","keyPath":"n","value":2}"#,
      #"{"op":"set","object":"A/1","keyPath":"peer","value":"A/2"}"#,
      #"{"op":"willChange",\#(named)}"#, #"{"op":"didChange",\#(named)}"#)
    let end = try server.revision
    let events = try unbroken.events { $0.json["revision"].whole == end }
    #expect(events.count >= 3)
    for since in start..<end {
      let resumed = try server.client.stream(path, ["Last-Event-ID": "\(server.epoch)-\(since)"])
      let expected = events.filter { $0.json["revision"].whole ?? 0 > since }.map(\.withoutRetry)
      #expect(try expected.map { _ in try resumed.next().withoutRetry } == expected, "since \(since)")
    }
  }

  @Test("Cells are told of it that come back by their stream's URL, or are opened anew with the cursor")
  func cells() throws {
    let server = try server()
    let cells = #"{"a":{"object":"A/1","keyPaths":["m","sum"],"options":["old","new"]}}"#
    let stream = try CuttableStream(server, cells: cells)
    let start = try server.revision
    try bracket(server)
    try server.set("A/1/n", "9")
    let events = try stream.read { $0.json["revision"].whole == (try? server.revision) }
    #expect(events.count == Self.bracketed.filter { $0 != "peer" }.count + 1)
    for since in start..<start + Self.bracketed.count {
      let cursor = "\(server.epoch)-\(since)"
      let expected = events.filter { $0.json["revision"].whole ?? 0 > since }
      try stream.cut()
      try stream.resume(since: cursor)
      #expect(try expected.map { _ in try stream.next() } == expected, "since \(since)")
      let anew = try server.client.stream(
        "/v1/streams", ["Content-Type": "application/json", "Last-Event-ID": cursor], method: "POST",
        body: "{\"cells\":\(cells)}")
      #expect(try anew.next().name == "open")
      #expect(try expected.map { _ in try anew.next() } == expected, "since \(since)")
    }
  }
}
