import HTTPServer
import KeyValueModel
import KeyValueObserving
import KeywayClient
import KeywayServer
import Store
import Support
import TestKit
import Testing

@Suite("Streams whose connection is cut")
struct CutStreamTests {
  private static let cells = """
    {"a":{"object":"Employee/1","keyPaths":["salary","department.name"],"options":["old","new","prior"],"context":"x"},
    "b":{"object":"Department/1","keyPaths":["employees","total"]},
    "h":{"object":"Employee/2","options":["old","new"],"visible":false},
    "m":{"object":"Department/3","keyPaths":["name"],"options":["new"]},
    "q":{"entity":"Employee","filter":"salary > 10.0","sort":"-salary","limit":4,"keys":["name"]},
    "v":{"entity":"Department","sort":"name","visible":false}}
    """

  private func server(_ configure: (inout KeywayServer.Configuration) -> Void = { _ in }) throws -> TestServer {
    let server = try Staff.server(configure)
    try server.client.must("PUT", "/v1/objects/Department/3", body: #"{"name":"Marks"}"#)
    return server
  }

  @Test("A stream that is cut again and again is told byte for byte what an unbroken one is", arguments: 0..<6)
  func resumedEqualsUnbroken(_ round: Int) throws {
    var random = SplitMix64(seed: seed)
    let server = try server()
    let unbroken = try CuttableStream(server, cells: Self.cells)
    let broken = try CuttableStream(server, cells: Self.cells)
    var world = StaffWriter(server)
    world.keeps = ["Department/3"]
    var marks = 0
    func mark() throws {
      marks += 1
      try server.set("Department/3/name", "\"mark \(marks)\"")
    }
    /// Reads everything up to the last mark.
    func read(_ stream: CuttableStream) throws {
      let name = "mark \(marks)"
      var exists = false
      try stream.read { event in
        exists = exists || event.json["changes"].items.contains { $0["cell"].text == "m" && $0["new"].text == name }
        return exists && event.id != nil
      }
    }
    for _ in 0..<60 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<4: for _ in 0..<Int.random(in: 1...4, using: &random) { try world.write(&random) }
      case 4..<7 where !broken.isCut:
        let operation = Self.operation(&random)
        // A commit, so that the following events have a new id.
        try server.client.must("PUT", "/v1/objects/Employee/aside", body: #"{"salary":1}"#)
        for stream in [unbroken, broken] {
          #expect(try stream.send(operation.method, "/cells" + operation.path, operation.body).status < 300)
        }
      case 7..<9 where broken.isCut: try broken.resume()
      case 7..<9:
        try mark()
        try read(unbroken)
        let isBehind = Bool.random(using: &random)
        try read(broken)
        if isBehind { try world.write(&random) }
        try broken.cut(byReset: isBehind)
      default:
        try mark()
        try read(unbroken)
        if !broken.isCut { try read(broken) }
      }
    }
    try mark()
    if broken.isCut { try broken.resume() }
    for stream in [unbroken, broken] { try read(stream) }
    #expect(broken.events == unbroken.events, "seed \(seed)")
    #expect(try cells(broken) == cells(unbroken), "seed \(seed)")
  }

  /// Returns the cells without `told`, which counts the events that were sent.
  private func cells(_ stream: CuttableStream) throws -> [String] {
    guard case .object(let cells) = try stream.send("GET", "/cells").json["cells"] else { return [] }
    return cells.members.map { name, cell in
      guard case .object(var body) = cell else { return name }
      body["told"] = nil
      return "\(name) \(Value.object(body).json)"
    }
  }

  private static func operation(_ random: inout SplitMix64) -> (method: String, path: String, body: String) {
    let flag = Bool.random(using: &random)
    switch Int.random(in: 0..<6, using: &random) {
    case 0: return ("PATCH", "/h", #"{"visible":\#(flag)}"#)
    case 1: return ("PATCH", "/v", #"{"visible":\#(flag)}"#)
    case 2: return ("PATCH", "/q", #"{"visible":\#(flag)}"#)
    case 3: return ("PUT", "/b", #"{"object":"Department/3","keyPaths":["total"],"visible":\#(flag)}"#)
    case 4:
      let number = Int.random(in: 1..<9, using: &random)
      return ("PATCH", "", #"{"cells":{"a":{"object":"Employee/\#(number)"},"x":\#(flag ? "{}" : "null")}}"#)
    default:
      return ("PATCH", "/q", #"{"filter":"salary > \#(Int.random(in: 5..<20, using: &random)).0"}"#)
    }
  }

  @Test("A client that resumes from any id gets the events that it has not received, bindings in between included")
  func everyCursor() throws {
    let server = try server()
    let stream = try CuttableStream(server, cells: #"{"a":{"object":"Employee/1","keyPaths":["salary"]}}"#)
    _ = try stream.next()
    let start = try server.revision
    for value in 1...3 { try server.set("Employee/1/salary", "\(value)") }
    try server.set("Employee/2/salary", "7")
    try stream.send("PUT", "/cells/b", #"{"object":"Employee/2","keyPaths":["salary"]}"#)
    try server.set("Employee/2/salary", "8")
    try server.set("Employee/3/name", #""aside""#)
    try stream.send("PUT", "/cells/q", #"{"entity":"Department","keys":["name"]}"#)
    for value in 4...6 { try server.set("Employee/1/salary", "\(value)") }
    try server.set("Department/1/name", #""last""#)
    try stream.read { $0.name == "content" }
    let end = try server.revision
    let events = stream.events
    for since in start..<end {
      try stream.cut()
      try stream.resume(since: "\(server.epoch)-\(since)")
      let expected = events.filter { $0.json["revision"].whole ?? 0 > since }
      #expect(try expected.map { _ in try stream.next() } == expected, "since \(since)")
    }
    // Everything was received: none of it comes again.
    try stream.cut()
    try stream.resume()
    try server.set("Employee/1/salary", "9")
    #expect(try stream.next().changes.map { $0["new"].whole } == [9])
    for (cursor, reason) in [("\(server.epoch)-\(start - 1)", "compacted"), ("zz-1", "epoch")] {
      try stream.cut()
      try stream.resume(since: cursor)
      #expect(try stream.next().json["reason"].text == reason)
      let state = try stream.next()
      #expect(state.json["initial"] == .bool(true) && state.changes.map { $0["cell"].text } == ["a", "b"])
      #expect(try stream.next().name == "results")
    }
  }

  @Test("A stream that was cut behind a slow reader goes on as if the reader had been quick", arguments: [true, false])
  func slowReader(_ hidesMeanwhile: Bool) throws {
    let server = try server { $0.server.pendingBytesPerStream = 4096 }
    let cells = #"{"a":{"object":"Employee/1","keyPaths":["name"],"options":["old","new"]}}"#
    let quick = try CuttableStream(server, cells: cells)
    let slow = try CuttableStream(server, cells: cells, receiveBufferBytes: 4096)
    try server.set("Employee/1/name", #""first""#)
    for stream in [quick, slow] { _ = try stream.next() }
    let text = String(repeating: "x", count: 20_000)
    var number = 0
    func write() throws {
      number += 1
      try server.set("Employee/1/name", "\"\(number)\(text)\"")
    }
    while try server.client.json("/v1/status")["lagging"].whole == 0 {
      try write()
      _ = try quick.next()
    }
    for _ in 0..<3 { try write() }
    if hidesMeanwhile {
      for stream in [quick, slow] { try stream.send("PATCH", "/cells/a", #"{"visible":false}"#) }
      for _ in 0..<3 { try write() }
    }
    try slow.cut(byReset: true)
    for _ in 0..<3 { try write() }
    try slow.resume()
    for stream in [quick, slow] { try stream.send("PATCH", "/cells/a", #"{"visible":true}"#) }
    try server.set("Employee/1/name", #""last""#)
    for stream in [quick, slow] { try stream.read { $0.changes.last?["new"].text == "last" } }
    let revision = slow.events.first?.json["revision"].whole
    #expect(revision == quick.events.first?.json["revision"].whole)
    if hidesMeanwhile {
      // The events that a slow reader had not received when its cell left the screen are merged with those that the
      // cell missed afterwards.
      #expect(slow.events.last == quick.events.last)
      #expect(slow.events.dropLast().last?.changes.first?["new"] == quick.events.dropLast().last?.changes.first?["new"])
    } else {
      #expect(slow.events == quick.events)
    }
  }

  @Test("A query that was changed off screen is right on screen, whatever id its client comes back with")
  func requeriedOffScreen() throws {
    let server = try server()
    let cells = #"{"q":{"entity":"Employee","sort":"salary","keys":["salary"]}}"#
    let stream = try CuttableStream(server, cells: cells)
    _ = try stream.next()
    let start = try server.revision
    for value in 20...23 { try server.set("Employee/1/salary", "\(value)") }
    try stream.read { $0.json["revision"].whole == start + 4 }
    try stream.send("PATCH", "/cells/q", #"{"visible":false}"#)
    try server.set("Employee/1/salary", "24")
    var filter = 0
    for since in start...start + 5 {
      // The client has the events up to that revision, as if it had not received the rest.
      var list = LiveList()
      for event in stream.events where event.json["revision"].whole ?? 0 <= since { try list.apply(event) }
      let told = stream.events.count
      filter += 1
      try stream.send("PATCH", "/cells/q", #"{"filter":"salary > \#(filter)"}"#)
      try server.set("Employee/2/salary", "\(filter)")
      try stream.cut()
      try server.set("Employee/3/salary", "\(filter + 3)")
      try stream.resume(since: "\(server.epoch)-\(since)")
      try stream.send("PATCH", "/cells/q", #"{"visible":true}"#)
      try server.set("Employee/1/salary", "\(filter + 100)")
      try stream.read { $0.json["revision"].whole == (try? server.revision) }
      for event in stream.events.dropFirst(told) { try list.apply(event) }
      let fetched = try server.client.json("/v1/objects/Employee?sort=salary&keys=salary&filter=salary%3E\(filter)")
      #expect(list.values == fetched["objects"].items.map(\.withoutRevision), "since \(since)")
      try stream.send("PATCH", "/cells/q", #"{"visible":false}"#)
    }
  }

  @Test("A query that was changed behind a slow reader is told as it is when the stream goes on")
  func requeriedBehindReader() throws {
    let server = try server { $0.server.pendingBytesPerStream = 4096 }
    let stream = try CuttableStream(
      server, cells: #"{"q":{"entity":"Employee","sort":"name","keys":["name"]}}"#, receiveBufferBytes: 4096)
    var list = LiveList()
    try list.apply(try stream.next())
    let text = String(repeating: "x", count: 20_000)
    var number = 0
    // In the second round the stream has been cut before, and received its state when it was resumed.
    for filter in ["salary > 11.0", "salary > 10.0"] {
      while try server.client.json("/v1/status")["lagging"].whole == 0 {
        number += 1
        try server.set("Employee/1/name", "\"\(number)\(text)\"")
      }
      let told = stream.events.count
      try stream.send("PATCH", "/cells/q", "{\"filter\":\"\(filter)\"}")
      try server.set("Employee/4/name", #""before""#)
      try stream.cut(byReset: true)
      try stream.resume()
      try server.set("Employee/4/name", "\"last \(number)\"")
      try stream.read { $0.json["revision"].whole == (try? server.revision) }
      for event in stream.events.dropFirst(told) { try list.apply(event) }
      let fetched = try server.client.json(
        "/v1/objects/Employee?sort=name&keys=name&filter=\(Staff.encoded(filter))")
      #expect(list.values == fetched["objects"].items.map(\.withoutRevision), "\(filter)")
    }
  }

  @Test("Cells that are bound at one revision are told once, however many requests bound them")
  func oneRevision() throws {
    let server = try server()
    let stream = try CuttableStream(server)
    for name in ["a", "b", "c"] {
      try stream.send("PUT", "/cells/\(name)", #"{"object":"Employee/1","keyPaths":["salary"]}"#)
      _ = try stream.next()
    }
    try stream.cut()
    try stream.resume()
    try server.set("Employee/1/salary", "9")
    #expect(try stream.next().changes.map { $0["new"].whole } == [9, 9, 9])
    // Unread events come again, although the client has their id.
    let before = stream.events.count
    try stream.send("PUT", "/cells/d", #"{"object":"Employee/2","keyPaths":["salary"]}"#)
    #expect(stream.events.count == before)
    try stream.cut(byReset: true)
    try stream.resume()
    #expect(try stream.next().changes.map { $0["cell"].text } == ["d"])
  }

  @Test("Without a cursor comes the state, asked for or not; an object that is gone by then is told so")
  func withoutCursor() throws {
    let server = try server()
    let stream = try CuttableStream(
      server,
      cells: #"{"a":{"object":"Employee/1"},"b":{"object":"Employee/2","context":"c"},"#
        + #""h":{"object":"Employee/3","visible":false},"#
        + #""n":{"object":"Employee/1","keyPaths":["salary"],"options":["new"]}}"#)
    _ = try stream.next()
    try stream.cut()
    try server.set("Employee/1/salary", "77")
    for number in 2...3 { try server.client.must("DELETE", "/v1/objects/Employee/\(number)") }
    let again = try server.client.stream(stream.url)
    #expect(try again.next().name == "open")
    let state = try again.next()
    #expect(state.json["initial"] == .bool(true) && state.changes.map { $0["cell"].text } == ["a", "a", "n"])
    #expect(state.changes.last?["new"].whole == 77)
    let gone = try again.next()
    #expect(gone.name == "gone" && gone.json["cell"].text == "b" && gone.json["context"].text == "c")
    try stream.send("PATCH", "/cells/h", #"{"visible":true}"#)
    #expect(try again.next().json["cell"].text == "h")
  }

  @Test("A second connection takes the stream over, also one that reads nothing, within the client's share of streams")
  func takeover() throws {
    let server = try server { $0.server.streamsPerAddress = 1 }
    let stream = try CuttableStream(server, cells: Self.cells)
    try stream.read { $0.name == "results" }
    let first = try server.client.stream(stream.url, ["Last-Event-ID": try #require(stream.cursor)])
    #expect(try first.next().json["url"].text == stream.url)
    #expect(throws: LoopbackError.self) { try stream.next() }
    let second = try server.client.stream(stream.url, ["Last-Event-ID": try #require(stream.cursor)])
    #expect(try second.next().name == "open")
    #expect(try first.rest().isEmpty)
    try server.set("Employee/1/salary", "99")
    #expect(try second.next().json["revision"].whole == server.revision)
    #expect(try server.client.json("/v1/status")["streams"].whole == 1)
    let names = try server.client.json("/v1/streams")["streams"].items.map { "/v1/streams/\($0["stream"].text ?? "")" }
    #expect(names == [stream.url])
  }

  @Test("While it is cut it counts nowhere and is unknown to all but resumption and DELETE; ended, to these too")
  func whileCut() throws {
    let server = try server()
    let stream = try CuttableStream(server, cells: Self.cells)
    try stream.read { $0.name == "results" }
    try stream.cut()
    let status = try server.client.json("/v1/status")
    for name in ["streams", "cells", "observations", "queries"] { #expect(status[name].whole == 0, "\(name)") }
    #expect(try server.client.must("GET", "/metrics").text.contains("keyway_cut_streams 1"))
    #expect(server.openQueries == 0)
    #expect(server.server.store.withPublication { $0.observers.count } == 0)
    #expect(try server.client.json("/v1/streams")["streams"].items.isEmpty)
    for (method, path) in [
      ("GET", ""), ("GET", "/cells"), ("GET", "/cells/a"), ("PUT", "/cells"), ("PATCH", "/cells"), ("DELETE", "/cells"),
      ("PUT", "/cells/a"), ("PATCH", "/cells/a"), ("DELETE", "/cells/a"),
    ] {
      #expect(try stream.send(method, path, method.hasPrefix("P") ? "{}" : nil).problem == "unknown-stream")
    }
    try stream.resume()
    #expect(try stream.status() == 200)
    #expect(try server.client.json("/v1/status")["cells"].whole == 6)
    try stream.cut()
    #expect(try stream.send("DELETE", "").status == 204)
    #expect(try stream.send("DELETE", "").problem == "unknown-stream")
    #expect(throws: LoopbackError.self) { try stream.resume() }
    #expect(try server.client.json("/v1/status")["memory"]["streams"].whole == 0)
  }

  @Test("A stream that a client ended is gone at once")
  func ended() throws {
    let server = try server()
    let stream = try CuttableStream(server, cells: Self.cells)
    #expect(try stream.send("DELETE", "").status == 204)
    #expect(throws: LoopbackError.self) { try stream.resume() }
    #expect(try stream.send("DELETE", "").status == 404)
  }

  @Test("If more was missed than is stored or may be sent, all cells are reset, those off screen once they are visible")
  func resets() throws {
    for (reason, revisions, bytes) in [("compacted", 5, 1 << 20), ("overflow", 100, 4096)] {
      let server = try server {
        $0.store.historyRevisions = revisions
        $0.streams.replayBytes = bytes
      }
      let stream = try CuttableStream(
        server, cells: #"{"a":{"object":"Employee/1","options":["new"]},"h":{"object":"Employee/2","visible":false}}"#)
      try server.set("Employee/1/name", #""seen""#)
      _ = try stream.next()
      try stream.cut()
      for number in 0..<8 {
        try server.set("Employee/1/name", "\"\(number)\(String(repeating: "x", count: 1000))\"")
        try server.set("Employee/2/name", "\"hidden \(number)\"")
      }
      try stream.resume()
      let reset = try stream.next()
      #expect(reset.name == "reset" && reset.json["reason"].text == reason)
      let state = try stream.next()
      #expect(state.json["initial"] == .bool(true) && Set(state.changes.map { $0["cell"].text }) == ["a"])
      try stream.send("PATCH", "/cells/h", #"{"visible":true}"#)
      let shown = try stream.next()
      #expect(shown.json["initial"] == .bool(true) && shown.changes.first?["new"].text == "hidden 7")
    }
  }

  @Test("A stream that cannot be opened again for now is kept as it is")
  func refused() throws {
    let server = try server { $0.server.streams = 1 }
    let stream = try CuttableStream(server, cells: #"{"a":{"object":"Employee/1","keyPaths":["salary"]}}"#)
    _ = try stream.next()
    try stream.cut()
    let memory = try server.client.json("/v1/status")["memory"]["streams"].whole
    let other = try CuttableStream(server)
    #expect(try server.client.send("GET", stream.url, ["Accept": "text/event-stream"]).problem == "too-many-streams")
    #expect(try server.client.json("/v1/status")["memory"]["streams"].whole == memory)
    try other.send("DELETE", "")
    #expect(Deadline().awaits { (try? server.client.json("/v1/status"))?["streams"].whole == 0 })
    try server.set("Employee/1/salary", "5")
    try stream.resume()
    #expect(try stream.next().changes.map { $0["new"].whole } == [5])
  }

  @Test("A stream that the server ended because of its age is resumed, with since as well as with the header")
  func lifetime() throws {
    let server = try server { $0.server.lifetimeSeconds = 2 }
    let stream = try CuttableStream(server, cells: #"{"a":{"object":"Employee/1","keyPaths":["salary"]}}"#)
    try stream.read { $0.name == "bye" }
    try stream.cut()
    try server.set("Employee/1/salary", "5")
    let again = try server.client.stream("\(stream.url)?since=\(try #require(stream.cursor))")
    #expect(try again.next().name == "open")
    #expect(try again.next().changes.map { $0["new"].whole } == [5])
  }

  @Test("After streams.resumeSeconds without a connection it is forgotten, and so is its memory")
  func expiry() throws {
    let clock = Locked<UInt64>(1_000)
    let server = try TestServer({ $0.streams.resumeSeconds = 5 }, now: { clock.withLock { $0 } })
    let stream = try CuttableStream(server, cells: #"{"a":{"object":"Account/1"}}"#)
    _ = try stream.next()
    try stream.cut()
    clock.withLock { $0 += 5 }
    try stream.resume()
    try stream.cut()
    #expect(try server.client.json("/v1/status")["memory"]["streams"].whole ?? 0 > 0)
    clock.withLock { $0 += 6 }
    #expect(throws: LoopbackError.self) { try stream.resume() }
    #expect(
      Deadline().awaits { (try? server.client.json("/v1/status"))?["memory"]["streams"].whole == 0 })
  }

  @Test("A client that has as many cut streams as it may loses its oldest")
  func bounds() throws {
    let server = try server { $0.streams.cutPerAddress = 2 }
    let streams = try (0..<3).map { _ in try CuttableStream(server, cells: #"{"a":{"object":"Employee/1"}}"#) }
    for stream in streams { try stream.cut() }
    #expect(throws: LoopbackError.self) { try streams[0].resume() }
    for stream in streams[1...] { try stream.resume() }
  }
}
