import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("The end of a stream with a slow reader")
struct SlowReaderEndTests {
  private static let settings = ["streams.pendingBytes": "8192"]
  private static let text = String(repeating: "x", count: 90_000)

  /// Sets the text of a note until so many streams lag. Returns the number of sets.
  private func flood(_ server: ServerProcess, _ note: String, untilLagging count: Int) throws -> Int {
    var number = 0
    while try server.status["lagging"].whole ?? 0 < count {
      number += 1
      try server.set("Note/\(note)/text", "\"\(number) \(Self.text)\"")
      guard number < 1_000 else { throw LoopbackError(.timedOut, "nobody lags") }
    }
    return number
  }

  @Test("When the object is deleted it is told so in the place of what it missed, and the stream ends")
  func deleted() throws {
    let server = try ServerProcess(settings: Self.settings)
    try server.set("Note/9", "{}")
    let stream = try server.client.stream("/v1/objects/Note/9/text?options=new", receiveBufferBytes: 4096)
    let count = try flood(server, "9", untilLagging: 1)
    try server.client.must("DELETE", "/v1/objects/Note/9")
    let revision = try server.revision
    #expect(try Deadline().awaits { try server.status["lagging"].whole == 0 })
    // The first block only has retry.
    let told = try stream.rest().filter { $0.name != nil }
    #expect(stream.isComplete)
    #expect(told.count - 1 < count)
    #expect(told.dropLast().allSatisfy { $0.name == "change" && !$0.changes[0].has("coalesced") })
    #expect(told.last?.name == "gone")
    #expect(told.last?.json["revision"].whole == revision)
    #expect(try server.client.send("GET", "/v1/objects/Note/9/text").status == 404)
  }

  @Test("When the object of a cell is deleted the cell is told so, the others what they missed, and the stream goes on")
  func deletedOfCell() throws {
    let server = try ServerProcess(settings: Self.settings)
    for note in ["8", "9"] { try server.set("Note/\(note)", "{}") }
    let body = """
      {"cells":{"a":{"object":"Note/8","keyPaths":["text"]},"b":{"object":"Note/9","keyPaths":["text"]}}}
      """
    let stream = try server.client.stream("/v1/streams", method: "POST", body: body, receiveBufferBytes: 4096)
    let name = try #require(try stream.next().json["stream"].text)
    _ = try stream.next()
    let count = try flood(server, "8", untilLagging: 1)
    try server.set("Note/9/text", #""lost""#)
    try server.client.must("DELETE", "/v1/objects/Note/9")
    #expect(try server.client.json("/v1/streams/\(name)/cells/b")["object"] == .null)
    let told = try stream.events { $0.name == "gone" }
    #expect(told.last?.json["cell"].text == "b")
    #expect(told.allSatisfy { $0.changes.allSatisfy { $0["cell"].text == "a" } })
    #expect(told.flatMap(\.changes).reduce(0) { $0 + ($1["coalesced"].whole ?? 1) } == count)
    try server.set("Note/8/text", #""next""#)
    #expect(try stream.next().changes.first?["new"].text == "next")
  }

  @Test("At the server's end it is told bye after all that was queued, and not what it missed")
  func shutdown() throws {
    let server = try ServerProcess(settings: Self.settings)
    let stream = try server.client.stream("/v1/objects/Note/1/text?options=new", receiveBufferBytes: 4096)
    let count = try flood(server, "1", untilLagging: 1)
    server.child.send(SIGTERM)
    // It must not read before its stream has been ended: otherwise it would first get a catch-up.
    #expect(Deadline().awaits { (try? server.status["lagging"].whole) == 0 })
    // The first block only has retry.
    let told = try stream.rest().filter { $0.name != nil }
    #expect(stream.isComplete)
    #expect(told.last?.text == "event: bye\ndata: {\"reason\":\"shutdown\"}")
    #expect(told.dropLast().allSatisfy { $0.name == "change" && !$0.changes[0].has("coalesced") })
    #expect(told.count - 1 < count)
    #expect(try server.child.exitStatus() == 0)
  }

  @Test("One that never reads again is cut after streams.stallSeconds, and nothing is left of it")
  func stalled() throws {
    let settings = Self.settings.merging(["streams.stallSeconds": "1"]) { $1 }
    let server = try ServerProcess(settings: settings)
    let stream = try server.client.stream("/v1/objects/Note/1/text?options=new", receiveBufferBytes: 4096)
    _ = try flood(server, "1", untilLagging: 1)
    #expect(try server.hasNoStreams())
    let status = try server.status
    #expect(status["lagging"].whole == 0)
    #expect(status["pendingBytes"].whole == 0)
    #expect(throws: LoopbackError.self) { try stream.rest() }
    #expect(try server.client.send("GET", "/metrics").text.contains("reason=\"stalled\"} 1"))
  }

  @Test("The pending events of many slow readers do not grow with the commits that they miss")
  func memory() throws {
    let server = try ServerProcess(settings: Self.settings)
    let streams = try (0..<20).map {
      try server.client.stream(
        "/v1/objects/Note/1/text?options=old,new&context=\($0 % 3)", receiveBufferBytes: 4096)
    }
    _ = try flood(server, "1", untilLagging: streams.count)
    let pending = try #require(try server.status["pendingBytes"].whole)
    // Each stream holds its limit, and the event that is being sent.
    #expect(pending <= streams.count * (8192 + 2 * 91_000))
    for number in 0..<100 { try server.set("Note/1/text", "\"\(number) \(Self.text)\"") }
    try server.set("Note/1/text", #""last""#)
    #expect(try server.status["pendingBytes"].whole ?? .max <= pending)
    #expect(try server.status["lagging"].whole == streams.count)
    for stream in streams {
      let told = try stream.events { $0.changes.first?["new"].text == "last" }
      #expect(told.last?.changes.first?["coalesced"].whole ?? 0 > 100)
    }
  }
}
