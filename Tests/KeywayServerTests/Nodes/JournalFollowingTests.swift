import Cluster
import Foundation
import HTTPServer
import KeyValueModel
import KeywayServer
import Store
import Support
import TestKit
import Testing

@Suite("Followers of the journal")
struct JournalFollowingTests {
  @Test("Each hears of every revision once and in order, wherever it begins, while four write and others come and go")
  func seam() throws {
    let server = try TestServer()
    let (port, epoch) = (server.client.port, server.epoch)
    let last = 7 + 4 * 150
    let failures = TestThreads.run(9) { index in
      let client = WireClient(port: port)
      if index < 4 {
        for number in 0..<150 {
          try client.must("PUT", "/v1/objects/Account/\(index % 2 + 1)/visits", body: "\(number)")
        }
        return
      }
      if index == 4 {
        var follower = try JournalFollower(client, epoch: epoch, since: 0)
        return try follower.read(through: last)
      }
      var random = SplitMix64(seed: seed &+ UInt64(index))
      for _ in 0..<20 {
        let present = try client.json("/v1/status")["revision"].whole ?? 0
        // Near the present, where the live events begin, or anywhere, or without a cursor.
        let start: Int? =
          switch Int.random(in: 0..<3, using: &random) {
          case 0: Int.random(in: 0...present, using: &random)
          case 1: Int.random(in: max(0, present - 3)...present, using: &random)
          default: nil
          }
        var follower = try JournalFollower(client, epoch: epoch, since: start)
        try follower.read(through: min(last, follower.revision + Int.random(in: 0...60, using: &random)))
      }
    }
    #expect(failures.isEmpty, "seed \(seed)")
    withExtendedLifetime(server) {}
  }

  private static let text = String(repeating: "x", count: 8192)

  @Test("One that stops reading is told everything from the journal when it reads again, and holds little meanwhile")
  func slow() throws {
    let server = try TestServer { $0.server.pendingBytesPerStream = 65_536 }
    var quick = try JournalFollower(server.client, epoch: server.epoch)
    var slow = try JournalFollower(server.client, epoch: server.epoch, receiveBufferBytes: 4096)
    // More transactions than are cached as events.
    let count = 700
    var largest = 0
    for number in 1...count {
      try server.set("Note/1/text", "\"\(number) \(Self.text)\"")
      try quick.read(through: 7 + number)
      if number.isMultiple(of: 50) {
        largest = max(largest, try server.client.json("/v1/status")["pendingBytes"].whole ?? 0)
      }
    }
    #expect(largest <= 65_536 + 4 * 8500)
    #expect(try server.client.json("/v1/status")["lagging"].whole == 1)
    for number in 1...count {
      let transaction = try slow.next()
      #expect(transaction["operations"][0]["value"].text?.hasPrefix("\(number) ") == true)
    }
    #expect(try Deadline().awaits { try server.client.json("/v1/status")["lagging"].whole == 0 })
    try server.set("Note/1/text", "\"live\"")
    #expect(try slow.next()["operations"][0]["value"].text == "live")
  }

  @Test("One that reads again after the journal has forgotten what it missed is told so, and goes on from there")
  func tooSlow() throws {
    let server = try TestServer.compacting { $0.server.pendingBytesPerStream = 65_536 }
    let slow = try server.client.stream("/v1/journal", receiveBufferBytes: 4096)
    for number in 1...700 { try server.set("Note/1/text", "\"\(number) \(Self.text)\"") }
    var told = 7
    var event = try slow.next()
    while event.name == "transaction" {
      #expect(event.json["revision"].whole == told + 1)
      told += 1
      event = try slow.next()
    }
    #expect(event.name == "reset")
    #expect(event.json["reason"].text == "compacted")
    let revision = try #require(event.json["revision"].whole)
    #expect(revision > told)
    let heartbeat = try slow.block()
    #expect(heartbeat?.id == "\(server.epoch)-\(revision)")
    try server.set("Note/1/text", "\"live\"")
    let rest = try slow.events { $0.json["operations"][0]["value"].text == "live" }
    #expect(rest.map { $0.json["revision"].whole } == Array(revision + 1...708))
  }

  @Test("A replica that repeats the transactions ends with the same objects")
  func replica() throws {
    let server = try TestServer()
    let replica = try TestServer(objects: [])
    var random = SplitMix64(seed: seed)
    for _ in 0..<150 { try change(server, &random) }
    var follower = try JournalFollower(server.client, epoch: server.epoch, since: 0)
    let last = try server.revision
    while follower.revision < last { try repeated(try follower.next(), on: replica) }
    let target = "/v1/objects?limit=1000"
    #expect(
      try replica.client.send("GET", target).text == server.client.send("GET", target).text, "seed \(seed)")
  }

  private func change(_ server: TestServer, _ random: inout SplitMix64) throws {
    let note = "Note/n\(Int.random(in: 0..<12, using: &random))"
    let number = Int.random(in: 0..<100, using: &random)
    let operations =
      switch Int.random(in: 0..<6, using: &random) {
      case 0: #"{"op":"create","object":"\#(note)","value":{"text":"\#(number)","tags":{"a":[\#(number),null,0.5]}}}"#
      case 1: #"{"op":"set","object":"\#(note)","keyPath":"text","value":"ä\"\n\#(number)"}"#
      case 2: #"{"op":"patch","object":"\#(note)","value":{"tags":{"b":\#(number)},"parent":"Note/1"}}"#
      case 3: #"{"op":"delete","object":"\#(note)"}"#
      case 4:
        #"{"op":"create","entity":"Account","value":{"balance":\#(number)}},"#
          + #"{"op":"set","object":"Account/1","keyPath":"opening","value":\#(number)}"#
      default:
        #"{"op":"willChange","object":"Account/1","key":"opening"},"#
          + #"{"op":"set","object":"Account/1","keyPath":"opening","value":\#(number)},"#
          + #"{"op":"didChange","object":"Account/1","key":"opening"}"#
      }
    // Some name missing objects, or create existing ones: they change nothing.
    _ = try server.client.send("POST", "/v1/transactions", body: "{\"operations\":[\(operations)]}")
  }

  /// Repeats a transaction on a replica. A `put` is a request of its own.
  private func repeated(_ transaction: Value, on replica: TestServer) throws {
    let operations = transaction["operations"]
    if let object = operations[0]["object"].text, operations[0]["op"].text == "put" {
      try replica.client.must("PUT", "/v1/objects/\(object)", body: operations[0]["value"].json)
    } else {
      try replica.client.must("POST", "/v1/transactions", body: "{\"operations\":\(operations.json)}")
    }
  }

  @Test("It goes on by its id after the server was stopped and started again on the same store")
  func restart() throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "keyway-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    var cursor = ""
    do {
      let server = try TestServer(journal: try journal(directory.path))
      var follower = try JournalFollower(server.client, epoch: server.epoch, since: 0)
      try follower.read(through: 4)
      cursor = try #require(follower.stream.lastID)
      for number in 0..<20 { try server.set("Account/1/visits", "\(number)") }
      server.server.drain()
    }
    let server = try TestServer(objects: [], journal: try journal(directory.path))
    #expect(cursor == "\(server.epoch)-4")
    var follower = try JournalFollower(server.client, epoch: server.epoch, since: 4)
    try follower.read(through: 27)
    try server.set("Account/1/visits", "100")
    #expect(try follower.next()["operations"][0]["value"].whole == 100)
    let lines = try server.client.must("GET", "/v1/journal?since=\(cursor)")
    #expect(lines.text.split(separator: "\n").count == 24)
  }

  /// Opens the journal of a directory as soon as the former server has closed it.
  private func journal(_ directory: String) throws -> SQLiteJournal {
    var opened: SQLiteJournal?
    let isOpen = try Deadline().awaits {
      do throws(JournalError) {
        opened = try SQLiteJournal(directory: directory, durability: .synced) {
          JournalIdentity(epoch: "epoch1", schema: Fixture.schema)
        }
      } catch {
        guard case .inUse = error else { throw error }
      }
      return opened != nil
    }
    #expect(isOpen)
    return try #require(opened)
  }
}
