import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

@Suite("Coming back to a stream")
struct ResumeTests {
  private static let watched = "/v1/objects/Account/1/balance,owner.lastName,ownerName?options=old,new,prior"

  /// Makes one random commit. Most of them change the watched paths.
  private func write(_ server: TestServer, _ generator: inout SplitMix64) throws {
    let number = Int.random(in: 0..<4, using: &generator)
    switch Int.random(in: 0..<7, using: &generator) {
    case 0: try server.set("Account/1/balance", "\(number)")
    case 1: try server.set("Account/1/owner", ["null", #""Person/1""#, #""Person/2""#, #""Employee/1""#][number])
    case 2: try server.set("Person/1/lastName", "\"A\(number)\"", ["Keyway-Writer": "w\(number)"])
    case 3: try server.set("Person/2/lastName", "\"B\(number)\"")
    case 4: try server.set("Account/2/balance", "\(number)")
    case 5: try server.set("Employee/1/lastName", "\"C\(number)\"")
    default:
      try server.commit(
        #"{"op":"set","object":"Account/1","keyPath":"balance","value":\#(number)}"#,
        #"{"op":"set","object":"Person/1","keyPath":"lastName","value":"D\#(number)"}"#,
        #"{"op":"set","object":"Account/1","keyPath":"balance","value":7}"#)
    }
  }

  private func revision(_ event: WireEvent) -> Int { event.json["revision"].whole ?? -1 }

  @Test("A client that resumes with any id gets byte for byte what an unbroken stream got", arguments: 0..<3)
  func resumeEqualsUnbroken(_ round: Int) throws {
    var generator = SplitMix64(seed: seed)
    let server = try TestServer()
    let unbroken = try server.client.stream(Self.watched)
    let start = try server.revision
    for _ in 0..<30 { try write(server, &generator) }
    try server.set("Account/1/balance", "999")
    let end = try server.revision
    let events = try unbroken.events { revision($0) == end }
    for since in start...end {
      let cursor = "\(server.epoch)-\(since)"
      let expected = events.filter { revision($0) > since }
      let resumed = try server.client.stream(Self.watched, ["Last-Event-ID": cursor])
      let told = try expected.map { _ in try resumed.next().withoutRetry }
      #expect(told == expected, "seed \(seed), since \(since)")
    }
  }

  @Test("A stream that is cut again and again in the midst of writing loses and doubles nothing")
  func cutWhileWriting() throws {
    let server = try TestServer()
    let unbroken = try server.client.stream("/v1/objects/Account/1/visits?options=old,new")
    var cut = try server.client.stream("/v1/objects/Account/1/visits?options=old,new")
    var told: [WireEvent] = []
    var cursor = "\(server.epoch)-\(try server.revision)"
    for number in 1...60 {
      try server.set("Account/1/visits", "\(number)")
      guard number % 4 == 0 else { continue }
      // It has read none, some or all of the events since then.
      for _ in 0..<(number % 3) { told.append(try cut.next().withoutRetry) }
      cursor = told.last?.id ?? cursor
      if number.isMultiple(of: 8) { cut.socket.reset() } else { cut.socket.close() }
      cut = try server.client.stream(
        "/v1/objects/Account/1/visits?options=old,new&since=\(server.epoch)-0", ["Last-Event-ID": cursor])
    }
    while told.count < 60 { told.append(try cut.next().withoutRetry) }
    let expected = try (0..<60).map { _ in try unbroken.next().withoutRetry }
    #expect(told == expected)
  }

  @Test("A resumed stream tells no initial state, and goes on live; since= works as the header does")
  func since() throws {
    let server = try TestServer()
    let cursor = "\(server.epoch)-\(try server.revision)"
    let stream = try server.client.stream("/v1/objects/Account/1/balance?since=\(cursor)")
    let first = try #require(try stream.block())
    #expect(first.withoutRetry.lines.isEmpty)
    #expect(first.retry != nil)
    try server.set("Account/1/balance", "1")
    #expect(try stream.next().json.has("initial") == false)
  }

  @Test("A polyfill resumes by lastEventId in the query, which wins over since and gives way to the header")
  func polyfill() throws {
    let server = try TestServer()
    let (epoch, old) = (server.epoch, try server.revision)
    for number in 1...2 { try server.set("Account/1/balance", "\(number)") }
    let target = "/v1/objects/Account/1/balance?lastEventId="
    func told(_ id: String, _ headers: [String: String] = [:]) throws -> Double? {
      try server.client.stream(target + id, headers).next().changes.first?["new"].double
    }
    #expect(try told("\(epoch)-\(old)") == 1)
    #expect(try told("\(epoch)-\(old + 1)&since=\(epoch)-\(old)") == 2)
    #expect(try told("\(epoch)-\(old)", ["Last-Event-ID": "\(epoch)-\(old + 1)"]) == 2)
    // One that has no id yet sends an empty one.
    #expect(try server.client.stream(target).next().json["initial"] == .bool(true))
    #expect(try told("&since=\(epoch)-\(old)") == 1)
    #expect(try server.client.stream(target + "x").next().name == "reset")
    for other in ["Account/1", "Account"] {
      let stream = try server.client.stream("/v1/objects/\(other)?lastEventId=\(epoch)-\(old)")
      #expect(try stream.next().json["revision"].whole == old + 1, "\(other)")
    }
    let journal = try server.client.stream("/v1/journal?lastEventId=\(epoch)-\(old)")
    #expect(try journal.next().name == "transaction")
    #expect(try server.client.stream("/v1/streams?lastEventId=\(epoch)-\(old)").next().name == "open")
  }

  @Test("The header wins over the parameter")
  func headerWins() throws {
    let server = try TestServer()
    let old = try server.revision
    try server.set("Account/1/balance", "1")
    let target = "/v1/objects/Account/1/balance?since=nonsense"
    let stream = try server.client.stream(target, ["Last-Event-ID": "\(server.epoch)-\(old)"])
    #expect(try stream.next().name == "change")
    #expect(try server.client.stream(target).next().name == "reset")
  }

  @Test(
    "A cursor that is malformed, foreign or of the future is reset with reason epoch and the state, asked for or not",
    arguments: ["", "x", "zzzzzz-1", "EPOCH-99999", "EPOCH-", "EPOCH--1", "EPOCH-01", "EPOCH-18446744073709551616"])
  func resetByEpoch(_ template: String) throws {
    let server = try TestServer()
    let cursor = template.replacing("EPOCH", with: server.epoch)
    let stream = try server.client.stream("/v1/objects/Account/1/balance?options=new&since=\(cursor)")
    let revision = try server.revision
    let reset = try stream.next().withoutRetry
    #expect(reset.text == "event: reset\ndata: {\"reason\":\"epoch\",\"revision\":\(revision)}")
    let state = try stream.next()
    #expect(state.id == "\(server.epoch)-\(revision)")
    #expect(state.json["initial"] == .bool(true))
    #expect(state.changes.first?["new"].double == 100)
  }

  @Test("A cursor from before the kept history is reset with reason compacted; /v1/status tells the oldest that is not")
  func resetByCompaction() throws {
    let server = try TestServer { $0.store.historyRevisions = 5 }
    for number in 1...20 { try server.set("Account/1/balance", "\(number)") }
    let revision = try server.revision
    #expect(try server.client.json("/v1/status")["oldest"].text == "\(server.epoch)-\(revision - 5)")
    let kept = try server.client.stream("/v1/objects/Account/1/balance?since=\(server.epoch)-\(revision - 5)")
    #expect(try kept.next().changes.first?["new"].double == 16)
    let lost = try server.client.stream("/v1/objects/Account/1/balance?since=\(server.epoch)-\(revision - 6)")
    #expect(try lost.next().json["reason"].text == "compacted")
    #expect(try lost.next().json["initial"] == .bool(true))
  }

  @Test("A cursor from before the object existed is reset with reason compacted")
  func resetByBirth() throws {
    let server = try TestServer()
    let cursor = "\(server.epoch)-\(try server.revision)"
    try server.client.must("PUT", "/v1/objects/Note/9", body: "{}")
    let stream = try server.client.stream("/v1/objects/Note/9/text?since=\(cursor)")
    #expect(try stream.next().json["reason"].text == "compacted")
  }

  @Test("A cursor from before an object's deletion replays up to its gone, and the stream ends")
  func replayToGone() throws {
    let server = try TestServer()
    let cursor = "\(server.epoch)-\(try server.revision)"
    try server.set("Note/1/text", #""last words""#)
    try server.client.must("DELETE", "/v1/objects/Note/1")
    let stream = try server.client.stream("/v1/objects/Note/1/text?since=\(cursor)")
    let events = try stream.rest()
    #expect(events.map(\.name) == ["change", "gone"])
    #expect(events.last?.id == "\(server.epoch)-\(try server.revision)")
    #expect(stream.isComplete)
    let later = try server.client.send(
      "GET", "/v1/objects/Note/1/text?since=\(server.epoch)-\(try server.revision)", ["Accept": "text/event-stream"])
    #expect(later.status == 404)
  }
}
