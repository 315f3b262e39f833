import HTTPServer
import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("The journal as a stream")
struct JournalStreamTests {
  @Test("It begins at the present, says so at once, and tells each transaction as its line has it")
  func live() throws {
    let server = try TestServer()
    let stream = try server.client.stream("/v1/journal")
    #expect(stream.head["Content-Type"] == "text/event-stream; charset=utf-8")
    let first = try #require(try stream.block())
    #expect(first.retry != nil)
    #expect(
      first.withoutRetry.lines == [
        "id: \(server.epoch)-7", "event: heartbeat", #"data: {"revision":7}"#,
      ])
    try server.set("Account/1/balance", "5", ["Keyway-Writer": "me"])
    let event = try stream.next()
    let line = try server.client.must("GET", "/v1/journal?since=\(server.epoch)-7").text
    #expect(event.lines == ["id: \(server.epoch)-8", "event: transaction", "data: \(line.dropLast())"])
  }

  @Test("It goes on from a cursor with everything after it; the header wins over the parameter")
  func resumed() throws {
    let server = try TestServer()
    let target = "/v1/journal?since=\(server.epoch)-6"
    let stream = try server.client.stream(target, ["Last-Event-ID": "\(server.epoch)-2"])
    let told = try stream.events { $0.json["revision"].whole == 7 }
    #expect(told.map { $0.json["revision"].whole } == Array(3...7))
    try server.set("Account/1/balance", "5")
    #expect(try stream.next().json["revision"].whole == 8)
    var other = try JournalFollower(server.client, epoch: server.epoch, since: 8)
    try server.set("Account/1/balance", "6")
    try other.read(through: 9)
    #expect(try stream.next().json["revision"].whole == 9)
  }

  @Test(
    "A cursor of no use is a reset, and the stream goes on from the present", arguments: ["x", "zzzzzz-1", "future"])
  func reset(_ cursor: String) throws {
    let server = try TestServer()
    let cursor = cursor == "future" ? "\(server.epoch)-8" : cursor
    let stream = try server.client.stream("/v1/journal?since=\(cursor)")
    try expectReset(stream, "epoch", at: 7, of: server)
    try server.set("Account/1/balance", "5")
    #expect(try stream.next().json["revision"].whole == 8)
  }

  private func expectReset(_ stream: WireStream, _ reason: String, at revision: Int, of server: TestServer) throws {
    let reset = try #require(try stream.block()).withoutRetry
    #expect(reset.lines == ["event: reset", #"data: {"reason":"\#(reason)","revision":\#(revision)}"#])
    let heartbeat = try #require(try stream.block())
    #expect(heartbeat.name == "heartbeat")
    #expect(heartbeat.id == "\(server.epoch)-\(revision)")
  }

  @Test("A cursor from before what the journal keeps is a reset")
  func compacted() throws {
    let server = try TestServer.compacting()
    try server.compactJournal()
    let present = try server.revision
    let stream = try server.client.stream("/v1/journal?since=\(server.epoch)-7")
    try expectReset(stream, "compacted", at: present, of: server)
    try server.set("Account/1/balance", "5")
    #expect(try stream.next().json["revision"].whole == present + 1)
  }

  @Test("Heartbeats name the last transaction that was told")
  func heartbeats() throws {
    let server = try TestServer { $0.server.heartbeatSeconds = 1 }
    var behind = try JournalFollower(server.client, epoch: server.epoch, since: 0)
    let live = try server.client.stream("/v1/journal")
    _ = try live.block()
    #expect(try live.block()?.withoutRetry.lines.first == "id: \(server.epoch)-7")
    try behind.read(through: 7)
    #expect(try behind.stream.block()?.id == "\(server.epoch)-7")
    try server.set("Account/1/balance", "5")
    #expect(try live.next().id == "\(server.epoch)-8")
    #expect(try live.block()?.lines == ["id: \(server.epoch)-8", "event: heartbeat", #"data: {"revision":8}"#])
  }

  @Test("It is a stream among the others: counted, listed, and ended")
  func inspected() throws {
    let server = try TestServer()
    let stream = try server.client.stream("/v1/journal")
    #expect(try server.client.json("/v1/status")["streams"].whole == 1)
    let listed = try server.client.json("/v1/streams")["streams"][0]
    #expect(listed["kind"].text == "journal")
    let name = try #require(listed["stream"].text)
    #expect(try server.client.json("/v1/streams/\(name)")["kind"].text == "journal")
    try server.client.must("DELETE", "/v1/streams/\(name)")
    let bye = try stream.rest().last
    #expect(bye?.name == "bye")
    #expect(bye?.json["reason"].text == "expired")
    #expect(try Deadline().awaits { try server.client.json("/v1/status")["streams"].whole == 0 })
    let head = try server.client.send("HEAD", "/v1/journal", ["Accept": "text/event-stream"])
    #expect(head["Content-Type"] == "text/event-stream; charset=utf-8")
  }

  @Test("One that is too many is refused, and one that comes after it is served")
  func tooMany() throws {
    let server = try TestServer { $0.server.streams = 1 }
    let stream = try server.client.stream("/v1/journal")
    let refused = try server.client.send("GET", "/v1/journal", ["Accept": "text/event-stream"])
    #expect(refused.problem == "too-many-streams")
    stream.socket.close()
    #expect(try Deadline().awaits { try server.client.json("/v1/status")["streams"].whole == 0 })
    var next = try JournalFollower(server.client, epoch: server.epoch)
    try server.set("Account/1/balance", "5")
    try next.read(through: 8)
  }
}
