import HTTPServer
import KeyValueModel
import TestKit
import Testing

@testable import KeywayServer

@Suite("Events that are longer than streams.eventBytes", .timeLimit(.minutes(60)))
struct LongEventTests {
  private let server: TestServer
  private static let limit = 8192

  init() throws {
    server = try TestServer { $0.eventBytes = Self.limit }
    try set(text(5000))
  }

  private func text(_ count: Int, _ letter: Character = "x") -> String { String(repeating: letter, count: count) }

  private func set(_ text: String) throws { try server.set("Note/1/text", Value.string(text).json) }

  private func bindings(_ count: Int, keyPaths: Int = 1) -> String {
    let paths = Array(repeating: #""text""#, count: keyPaths).joined(separator: ",")
    let cells = (0..<count).map { #""c\#($0)":{"object":"Note/1","keyPaths":[\#(paths)]}"# }
    return #"{"cells":{\#(cells.joined(separator: ","))}}"#
  }

  private var streamCount: Int { get throws { try server.client.json("/v1/streams")["streams"].items.count } }

  @Test("A stream that would begin with more is 429, and nothing is opened")
  func openings() throws {
    for number in 2...8 {
      try server.client.must("PUT", "/v1/objects/Note/\(number)", body: #"{"text":"\#(text(1500))"}"#)
    }
    for target in ["/v1/objects/Note/1/text,text", "/v1/objects/Note?keys=text"] {
      let refused = try server.client.send("GET", target, ["Accept": "text/event-stream"])
      #expect(refused.status == 429 && refused.problem == "too-many-bytes", "\(target): \(refused.text.prefix(300))")
    }
    let refused = try server.client.send("POST", "/v1/streams", body: bindings(100, keyPaths: 64))
    #expect(refused.status == 429 && refused.problem == "too-many-bytes")
    #expect(try streamCount == 0)
    // Values that fit are served.
    #expect(try server.client.stream("/v1/objects/Note/1/text").next().changes.count == 1)
    #expect(try server.client.stream("/v1/objects/Note?keys=text&limit=4&sort=text").next().json["count"].whole == 4)
  }

  @Test("Cells that would begin with more are 429, and none is bound")
  func bindings() throws {
    let stream = try server.client.stream("/v1/streams")
    let name = try stream.next().json["stream"].text ?? ""
    let cells = "/v1/streams/\(name)/cells"
    let refused = try server.client.send("PUT", cells, body: bindings(2))
    #expect(refused.status == 429 && refused.problem == "too-many-bytes")
    #expect(try server.client.json(cells)["cells"].names.isEmpty)
    try server.client.must("PUT", cells, body: bindings(1))
    #expect(try stream.next().changes.count == 1)
    // One more of the same size fits, since the first is there already.
    try server.client.must("PUT", cells, body: bindings(2))
    #expect(try stream.next().changes.map { $0["cell"].text } == ["c1"])
  }

  @Test("The changes of one commit that exceed an event come merged", arguments: ["x", "\""])
  func merged(_ letter: String) throws {
    let stream = try server.subscribed("Note/1/text?options=new,initial")
    let cells = try server.client.stream("/v1/streams", method: "POST", body: bindings(1))
    for _ in 0..<2 { _ = try cells.next() }
    // Either the values alone are too long, or only their JSON is.
    let isText = letter == "x"
    let values = (0..<3).map { text((isText ? 2_800 : 2_000) - $0, isText ? "x" : "\"") }
    let operations = values.map {
      #"{"op":"set","object":"Note/1","keyPath":"text","value":\#(Value.string($0).json)}"#
    }
    try server.commit(operations[0], operations[1], operations[2])
    for event in [try stream.next(), try cells.next()] {
      #expect(event.changes.map { $0["coalesced"].whole } == [3])
      #expect(event.changes.map { $0["new"].text } == [values[2]])
    }
    // And the streams continue.
    try set("short")
    #expect(try stream.next().changes.map { $0["new"].text } == ["short"])
    #expect(try cells.next().changes.map { $0["new"].text } == ["short"])
  }

  @Test("A stream that cannot be told at all ends with overflow, and another is told at once")
  func overflow() throws {
    let stream = try server.subscribed("Note/1/text?options=old,new,initial")
    let cells = try server.client.stream("/v1/streams", method: "POST", body: bindings(1))
    let second = try cells.next().json["stream"].text ?? ""
    _ = try cells.next()
    try server.client.must("PUT", "/v1/streams/\(second)/cells", body: bindings(2))
    _ = try cells.next()
    let other = try server.subscribed("Note/1/text?options=new,initial")
    try set(text(5000, "y"))
    #expect(try other.next().changes.map { $0["new"].text } == [text(5000, "y")])
    // Old and new value together are too long, the state is not.
    #expect(try stream.next().changes.map { [$0["old"].text, $0["new"].text] } == [[nil, text(5000, "y")]])
    let bye = try cells.next()
    #expect(bye.name == "bye" && bye.json["reason"].text == "overflow")
    #expect(try cells.rest().isEmpty)
    try set("short")
    #expect(try other.next().changes.map { $0["new"].text } == ["short"])
    #expect(try stream.next().changes.map { [$0["old"].text, $0["new"].text] } == [[text(5000, "y"), "short"]])
  }

  @Test("The changes of such a commit that a cell off screen missed come as its state")
  func offScreen() throws {
    try set("short")
    let stream = try server.client.stream("/v1/streams", method: "POST", body: bindings(1))
    let name = try stream.next().json["stream"].text ?? ""
    _ = try stream.next()
    let cell = "/v1/streams/\(name)/cells/c0"
    try server.client.must("PATCH", cell, body: #"{"visible":false}"#)
    let operations = (0..<3).map { #"{"op":"set","object":"Note/1","keyPath":"text","value":"\#(text(3000 + $0))"}"# }
    try server.commit(operations[0], operations[1], operations[2])
    try server.client.must("PATCH", cell, body: #"{"visible":true}"#)
    #expect(try stream.next().changes.map { $0["new"].text } == [text(3002)])
  }

  @Test("A resumption that missed more is reset, and told the state")
  func resumption() throws {
    let server = try TestServer {
      $0.eventBytes = Self.limit
      $0.streams.replayBytes = Self.limit
    }
    let cursor = "\(server.epoch)-\(try server.revision)"
    for number in 0..<4 { try server.set("Note/1/text", "\"\(text(3000 + number))\"") }
    let stream = try server.client.stream("/v1/objects/Note/1/text?since=\(cursor)")
    let reset = try stream.next()
    #expect(reset.name == "reset" && reset.json["reason"].text == "overflow")
    #expect(try stream.next().changes.map { $0["new"].text } == [text(3003)])
  }

  @Test("A resumption that is to be told once more the states of cells, and those are too long, is reset")
  func repeatedStates() throws {
    let server = try TestServer {
      $0.eventBytes = Self.limit
      $0.server.pendingBytesPerStream = 4096
    }
    try server.client.must("PUT", "/v1/objects/Note/2", body: #"{"text":"\#(text(5000))"}"#)
    let stream = try CuttableStream(
      server, cells: #"{"m":{"object":"Note/1","keyPaths":["text"]}}"#, receiveBufferBytes: 4096)
    _ = try stream.next()
    var number = 0
    while try server.client.json("/v1/status")["lagging"].whole == 0 {
      number += 1
      try server.set("Note/1/text", "\"\(number)\(text(5000))\"")
    }
    for name in ["a", "b", "c"] {
      try stream.send("PUT", "/cells/\(name)", #"{"object":"Note/2","keyPaths":["text"]}"#)
    }
    try stream.cut(byReset: true)
    for value in ["first", "last"] { try server.set("Note/2/text", "\"\(value)\"") }
    try stream.resume()
    let reset = try #require(try stream.read { $0.name == "reset" }.last)
    #expect(reset.json["reason"].text == "overflow")
    var shown: [String: String] = [:]
    try stream.read { event in
      for change in event.changes { shown[change["cell"].text ?? ""] = change["new"].text }
      return shown.count == 4
    }
    #expect(["a", "b", "c"].map { shown[$0] } == ["last", "last", "last"])
  }

  @Test("A long value is encoded once for all that tell it")
  func sharing() throws {
    let texts = LongTexts()
    let value = text(10_000)
    let copies = (0..<3).map { _ in value }
    func address(_ bytes: [UInt8]) -> UInt { bytes.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } }
    #expect(Set(copies.map { address(texts.json(of: $0)) }).count == 1)
    #expect(texts.count == 1)
    #expect(texts.json(of: text(10_000, "\"")) == Array(Value.string(text(10_000, "\"")).json.utf8))
    // The number of cached texts is bounded.
    for number in 0..<40 { _ = texts.json(of: text(1_000_000 + number)) }
    #expect(texts.count < 20)
  }

  @Test("A text in pieces is what it would be in one")
  func pieces() throws {
    let values: [Value] = [
      .string(text(6000)), .array([.integer(1), .string(text(5000, "\"")), .array([]), .object([:])]), .null,
      .object(["a": .string(text(4096)), "b": .bool(true)]), .string("short"),
    ]
    var whole = EventBuffer(limit: .max, LongTexts())
    var expected: [UInt8] = []
    for value in values {
      whole.append(value)
      expected += Array(value.json.utf8)
    }
    var bytes: [UInt8] = []
    try #require(whole.event()).appendText(to: &bytes)
    #expect(bytes == expected)
    // At each limit it is either whole or given up, and never longer.
    for limit in [0, 1, 5999, 6002, 10_000, expected.count - 1, expected.count] {
      var text = EventBuffer(limit: limit, LongTexts())
      for value in values {
        text.append(value)
        #expect(text.count <= limit)
      }
      #expect(text.isTooLong == (limit < expected.count))
    }
  }

  @Test("If one client's streams would get more than a batch may have, some get it later, and no other client's")
  func batch() throws {
    let server = try TestServer { $0.streams.batchBytes = 20_000 }
    for number in 1...5 { try server.client.must("PUT", "/v1/objects/Note/\(number)", body: #"{"text":"short"}"#) }
    let cells = (1...5).map { #""c\#($0)":{"object":"Note/\#($0)","keyPaths":["text"]}"# }.joined(separator: ",")
    func open(_ client: WireClient) throws -> WireStream {
      let stream = try client.stream("/v1/streams", method: "POST", body: "{\"cells\":{\(cells)}}")
      for _ in 0..<2 { _ = try stream.next() }
      return stream
    }
    let greedy = try (0..<10).map { _ in try open(server.client) }
    let modest = try open(server.client(from: "127.0.0.2"))
    let operations = (1...5).map {
      #"{"op":"set","object":"Note/\#($0)","keyPath":"text","value":"\#(text(2_000 + $0))"}"#
    }
    try server.commit(operations.joined(separator: ","))
    let expected = (1...5).map { text(2_000 + $0) }
    var merged = 0
    for stream in greedy + [modest] {
      let changes = try stream.next().changes
      #expect(changes.compactMap { $0["new"].text }.sorted() == expected.sorted())
      let isMerged = changes.contains { $0["coalesced"].whole != nil }
      if isMerged { merged += 1 }
      #expect(!isMerged || stream !== modest)
    }
    #expect((1..<10).contains(merged))
  }
}
