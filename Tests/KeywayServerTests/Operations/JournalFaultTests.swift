import KeyValueModel
import Store
import Support
import TestKit
import Testing

@Suite("A journal that cannot be read, and those who follow it")
struct JournalFaultTests {
  private let journal = FaultyJournal(MemoryJournal(identity: JournalIdentity(epoch: "faulty", schema: "")))
  private let server: TestServer

  init() throws {
    server = try TestServer(journal: journal)
  }

  private func write(_ count: Int) throws {
    for number in 0..<count { try server.set("Account/1/visits", "\(number)") }
  }

  /// Reads transactions up to a `reset`. Returns the last revision before it and that of the reset.
  private func reset(_ stream: WireStream, from first: Int) throws -> (told: Int, reset: Int) {
    var told = first
    var event = try stream.next()
    while event.name == "transaction" {
      #expect(event.json["revision"].whole == told + 1)
      told += 1
      event = try stream.next()
    }
    #expect(event.name == "reset")
    #expect(event.json["reason"].text == "compacted")
    let revision = try #require(event.json["revision"].whole)
    #expect(try stream.block()?.id == "\(server.epoch)-\(revision)")
    return (told, revision)
  }

  @Test("Present and later followers skip damaged records, with a reset")
  func damaged() throws {
    journal.faults.withLock { $0.damaged = 9 }
    let live = try server.client.stream("/v1/journal")
    try write(4)
    let first = try reset(live, from: 7)
    #expect(first.told == 8)
    #expect((9...11).contains(first.reset))
    let later = try server.client.stream("/v1/journal?since=\(server.epoch)-5")
    let second = try reset(later, from: 5)
    #expect(second.told == 8)
    #expect(second.reset >= 9)
    try write(1)
    for (stream, start) in [(live, first.reset), (later, second.reset)] {
      let told = try stream.events { $0.json["revision"].whole == 12 }
      #expect(told.map { $0.json["revision"].whole } == Array(start + 1...12))
    }
  }

  @Test("In lines, what comes before the damage is given, and then it is a problem; what comes after it can be read")
  func damagedLines() throws {
    journal.faults.withLock { $0.damaged = 9 }
    try write(4)
    let before = try server.client.must("GET", "/v1/journal?since=\(server.epoch)-5")
    #expect(before.text.split(separator: "\n").count == 3)
    #expect(before["Keyway-Cursor"] == "\(server.epoch)-8")
    let damaged = try server.client.send("GET", "/v1/journal?since=\(server.epoch)-8")
    #expect(damaged.status == 503)
    #expect(damaged.problem == "store-unavailable")
    let after = try server.client.must("GET", "/v1/journal?since=\(server.epoch)-9")
    #expect(after.text.split(separator: "\n").count == 2)
  }

  @Test("A disk that fails for a moment ends the streams, and who comes back has missed nothing")
  func refused() throws {
    var live = try JournalFollower(server.client, epoch: server.epoch)
    try write(1)
    try live.read(through: 8)
    journal.faults.withLock { $0.refusals = 1 }
    try write(1)
    let bye = try live.stream.rest().last
    #expect(bye?.name == "bye")
    #expect(bye?.json["reason"].text == "shutdown")
    #expect(live.stream.lastID == "\(server.epoch)-8")
    var back = try JournalFollower(server.client, epoch: server.epoch, since: live.revision)
    try back.read(through: 9)
    try write(1)
    try back.read(through: 10)
  }

  @Test("The same while one is catching up")
  func refusedWhileBehind() throws {
    journal.faults.withLock { $0.refusals = 1 }
    let stream = try server.client.stream("/v1/journal?since=\(server.epoch)-3")
    #expect(try stream.rest().last?.json["reason"].text == "shutdown")
    var back = try JournalFollower(server.client, epoch: server.epoch, since: 3)
    try back.read(through: 7)
  }
}
