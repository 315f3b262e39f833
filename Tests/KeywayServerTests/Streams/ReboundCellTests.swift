import KeywayServer
import TestKit
import Testing

@Suite("Coming back to cells that were bound anew")
struct ReboundCellTests {
  private static let schema = "entities: {A: {keys: {n: {type: integer}, m: {type: integer}, peer: {toOne: A}}}}"

  private func server() throws -> TestServer {
    try TestServer(
      schema: Self.schema,
      objects: [("A/1", #"{"n":1}"#), ("A/2", #"{"n":1,"peer":"A/1"}"#), ("A/end", "{}")])
  }

  /// Expects that a client that returns with any of its ids gets the same events that followed it.
  private func expectUnbroken(
    _ stream: CuttableStream, _ server: TestServer, from start: Int, _ comment: Comment
  ) throws {
    try server.set("A/end/n", "1")
    let end = try server.revision
    try stream.read { $0.json["revision"].whole == end }
    let events = stream.events
    for since in start..<end {
      let expected = events.filter { $0.json["revision"].whole ?? 0 > since }
      try stream.cut()
      try stream.resume(since: "\(server.epoch)-\(since)")
      #expect(try expected.map { _ in try stream.next() } == expected, "\(comment), since \(since)")
    }
  }

  @Test(
    "A cell that lost its object and was bound to it again is told of both, and of all that followed",
    arguments: [#"["old","new"]"#, #"["initial","new"]"#, #"["old","new","prior","initial"]"#])
  func madeAgain(_ options: String) throws {
    let server = try server()
    let stream = try CuttableStream(
      server,
      cells: """
        {"c":{"object":"A/1","keyPaths":["n"],"options":\(options)},"d":{"object":"A/2","keyPaths":["peer.n"]},
        "end":{"object":"A/end","keyPaths":["n"],"options":["new"]}}
        """)
    let start = try server.revision
    try server.set("A/1/n", "0")
    try server.client.must("DELETE", "/v1/objects/A/1")
    try server.client.must("PUT", "/v1/objects/A/1", body: #"{"n":2}"#)
    try server.set("A/1/m", "1")
    #expect(
      try stream.send("PUT", "/cells/c", #"{"object":"A/1","keyPaths":["n","m"],"options":\#(options)}"#).status == 200)
    for value in 3...5 { try server.set("A/1/n", "\(value)") }
    try expectUnbroken(stream, server, from: start, "\(options)")
    #expect(stream.events.contains { $0.name == "gone" })
  }

  @Test("The events that a cell lost come again even if it was bound to another object, or to a query")
  func another() throws {
    for binding in [#"{"object":"A/2","keyPaths":["n"]}"#, #"{"entity":"A","filter":"n == 7","keys":["n"]}"#, "{}"] {
      let server = try server()
      let stream = try CuttableStream(
        server,
        cells: #"{"c":{"object":"A/1","keyPaths":["n"]},"end":{"object":"A/end","keyPaths":["n"],"options":["new"]}}"#)
      let start = try server.revision
      try server.set("A/1/n", "7")
      try server.set("A/2/n", "7")
      try server.client.must("DELETE", "/v1/objects/A/1")
      try server.set("A/2/m", "1")
      #expect(try stream.send("PUT", "/cells/c", binding).status == 200)
      try server.set("A/2/n", "8")
      try expectUnbroken(stream, server, from: start, "\(binding)")
    }
  }

  @Test("A cell off screen that was bound again remembers all that it missed, the time of the cut included")
  func offScreen() throws {
    let server = try server()
    let cells = #"{"c":{"object":"A/1","keyPaths":["n"],"options":["old","new"]}}"#
    let unbroken = try CuttableStream(server, cells: cells)
    let broken = try CuttableStream(server, cells: cells)
    let start = try server.revision
    try server.client.must("DELETE", "/v1/objects/A/1")
    try server.client.must("PUT", "/v1/objects/A/1", body: #"{"n":2}"#)
    for stream in [unbroken, broken] {
      #expect(try stream.next().name == "gone")
      let binding = #"{"object":"A/1","keyPaths":["n","m"],"options":["old","new"],"visible":false}"#
      #expect(try stream.send("PUT", "/cells/c", binding).status == 200)
    }
    try server.set("A/1/n", "3")
    try broken.cut()
    try server.set("A/1/n", "4")
    try server.set("A/1/m", "5")
    try broken.resume(since: "\(server.epoch)-\(start)")
    #expect(try broken.next().name == "gone")
    for stream in [unbroken, broken] {
      #expect(try stream.send("GET", "/cells/c").json["pending"].whole == 3)
      #expect(try stream.send("PATCH", "/cells/c", #"{"visible":true}"#).status == 200)
    }
    let told = try unbroken.next()
    #expect(told.changes.map { $0["coalesced"].whole } == [2, 1])
    #expect(try broken.next() == told)
  }

  @Test("Random cells whose objects are deleted, made again and bound again", arguments: 0..<6 as Range<UInt64>)
  func random(_ round: UInt64) throws {
    var random = SplitMix64(seed: seed &+ round)
    let server = try server()
    let cell = #"{"object":"A/%","keyPaths":["n","peer.n"],"options":["old","new"]}"#
    func binding(_ number: Int) -> String { cell.replacing("%", with: "\(number)") }
    let stream = try CuttableStream(
      server,
      cells: """
        {"c1":\(binding(1)),"c2":\(binding(2)),"end":{"object":"A/end","keyPaths":["n"],"options":["new"]}}
        """)
    let start = try server.revision
    var deleted: Set<Int> = []
    var unbound: Set<Int> = []
    for step in 0..<24 {
      let number = Int.random(in: 1...2, using: &random)
      let exists = try server.client.send("GET", "/v1/objects/A/\(number)").status == 200
      switch Int.random(in: 0..<6, using: &random) {
      case 0 where !deleted.contains(number):
        deleted.insert(number)
        unbound.insert(number)
        try server.client.must("DELETE", "/v1/objects/A/\(number)")
      case 1 where exists && unbound.contains(number):
        // A commit, so that the cell's first event has an id of its own.
        try server.client.must("PUT", "/v1/objects/A/aside", body: "{}")
        #expect(try stream.send("PUT", "/cells/c\(number)", binding(number)).status == 200)
        unbound.remove(number)
      case 2 where exists:
        try server.commit(
          #"{"op":"delete","object":"A/\#(number)"}"#,
          #"{"op":"create","object":"A/\#(number)","value":{"n":\#(step)}}"#)
      case 3 where exists:
        let named = #""object":"A/\#(number)","key":"n""#
        try server.commit(#"{"op":"willChange",\#(named)}"#, #"{"op":"didChange",\#(named)}"#)
      default:
        let peer = try server.client.send("GET", "/v1/objects/A/\(3 - number)").status == 200 ? 3 - number : number
        if !exists { try server.client.must("PUT", "/v1/objects/A/\(number)", body: "{}") }
        try server.set("A/\(number)/n", "\(step)")
        try server.set("A/\(number)/peer", "\"A/\(peer)\"")
      }
    }
    try expectUnbroken(stream, server, from: start, "seed \(seed), round \(round)")
  }
}
