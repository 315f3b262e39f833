import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("A disk that fails")
struct FaultTests {
  /// A server on a faulty disk, with one counter, and its acknowledged values.
  private final class World {
    let folder: ScratchDirectory
    let disk: FaultyDisk
    let server: DurableServer
    /// The last acknowledged value; `revision` is its revision.
    private(set) var value = 0
    private(set) var revision = 0
    /// The text of the last refusal.
    private(set) var refusal = ""

    init(settings: [String: String] = [:]) throws {
      folder = try ScratchDirectory()
      disk = try FaultyDisk(directory: folder.file("store"))
      let schema = try folder.write(
        "entities:\n  Counter:\n    keys:\n      value: { type: integer }\n      text: { type: string }\n",
        to: "schema.yaml")
      server = try DurableServer(
        schema: schema, store: disk.directory,
        settings: settings.merging(["heartbeat.seconds": "1"]) { given, _ in given }, environment: disk.environment)
      #expect(try write() == 201)
    }

    /// Sets the counter to the next value. Returns the status, or nil if the server ended before it responded.
    @discardableResult
    func write() throws -> Int? {
      // Longer than a page, so that a half-written value is neither the old nor the new one.
      let text = String(repeating: "x", count: 6000)
      let answer = try? server.client.send(
        "PUT", "/v1/objects/Counter/1", body: #"{"value":\#(value + 1),"text":"\#(text)"}"#)
      guard let answer else { return nil }
      if answer.status == 200 || answer.status == 201 {
        value += 1
        let cursor = try #require(answer["Keyway-Cursor"])
        let told = try #require(cursor.split(separator: "-").last.flatMap { Int($0) })
        #expect(told == revision + 1, "a write that was refused has used a revision")
        revision = told
      } else {
        #expect(answer.status == 503)
        #expect(answer.problem == "store-unavailable", "\(answer.text)")
        #expect(answer["Retry-After"] != nil)
        refusal = answer.json["detail"].text ?? ""
      }
      return answer.status
    }

    /// Expects that the server has exactly the acknowledged value and revision.
    func check(_ note: Comment) throws {
      let object = try server.client.json("/v1/objects/Counter/1")
      #expect(object["value"].whole == value, note)
      #expect(object["@revision"].whole == revision, note)
      #expect(try server.revision == revision, note)
    }

    /// Checks the state after an end that left a write without a response: it was done completely, or not at all.
    func settle(_ note: Comment) throws {
      let object = try server.client.json("/v1/objects/Counter/1")
      let isDone = object["value"].whole == value + 1
      if isDone { (value, revision) = (value + 1, revision + 1) }
      try check(note)
    }

    func stream(since cursor: String? = nil) throws -> WireStream {
      var headers: [String: String] = [:]
      headers["Last-Event-ID"] = cursor
      return try server.client.stream("/v1/objects/Counter/1/value?options=initial,old,new", headers)
    }

    /// Waits until writes are accepted again.
    func resumes() throws -> Bool {
      try Deadline().awaits { try write() == 200 }
    }
  }

  @Test(
    "While it fails, writes are store-unavailable and not told; reads and streams go on, and so do writes after it",
    arguments: FaultyDisk.Fault.survivable)
  func unavailable(_ fault: FaultyDisk.Fault) throws {
    let world = try World()
    try world.write()
    let stream = try world.stream()
    let first = try stream.next()
    #expect(first.changes.first?["new"].whole == world.value)
    try world.disk.set(fault)
    for _ in 0..<5 { #expect(try world.write() == 503) }
    try world.check("\(fault)")
    let other = try world.stream()
    #expect(try other.next().changes == first.changes)
    #expect(try world.server.client.send("GET", "/healthz").status == 200)
    // A heartbeat comes, and names no revision that was not acknowledged. `next` skips it.
    let heartbeat = try #require(try stream.block())
    #expect(heartbeat.name == "heartbeat")
    #expect(heartbeat.json["revision"].whole == world.revision)
    try world.disk.set(.none)
    let resumes = try world.resumes()
    #expect(resumes, "\(world.refusal)")
    let told = try stream.next()
    #expect(told.json["revision"].whole == world.revision)
    #expect(told.changes.first?["old"].whole == world.value - 1)
    #expect(told.changes.first?["new"].whole == world.value)
    try world.check("\(fault)")
    try world.server.restart()
    try world.check("\(fault), then killed")
    let resumed = try world.stream(since: first.id)
    #expect(try resumed.next().withoutRetry == told)
  }

  @Test(
    "A store that was stopped while the disk failed starts with what was acknowledged, however it was stopped",
    arguments: FaultyDisk.Fault.survivable, [SIGTERM, SIGKILL])
  func stopped(_ fault: FaultyDisk.Fault, _ signal: Int32) throws {
    let world = try World()
    for refusals in 1...3 {
      try world.write()
      try world.disk.set(fault)
      for _ in 0..<refusals { #expect(try world.write() == 503) }
      try world.server.end(signal)
      try world.disk.set(.none)
      try world.server.start()
      try world.check("\(fault)")
      #expect(try world.write() == 200)
      // The log's records were moved to the database once, and none is left to move.
      try world.server.restart(SIGTERM)
      try world.check("\(fault)")
    }
  }

  @Test(
    "A write that is refused soon after recovery does not exist after a kill",
    arguments: [FaultyDisk.Fault.syncError, .logSyncError])
  func refusedAgain(_ fault: FaultyDisk.Fault) throws {
    let world = try World()
    for _ in 0..<3 {
      try world.disk.set(fault)
      #expect(try world.write() == 503)
      try world.disk.set(.none)
      // The server itself notices that the disk works again, without a write.
      #expect(try Deadline().awaits { try world.server.client.send("GET", "/readyz").status == 200 })
      #expect(try world.write() == 200)
      try world.disk.set(fault)
      #expect(try world.write() == 503)
      try world.server.end(SIGKILL)
      try world.disk.set(.none)
      try world.server.start()
      try world.check("\(fault)")
    }
  }

  @Test(
    "A write that was torn, or not synced, when the process was killed is there wholly or not at all",
    arguments: [FaultyDisk.Fault.torn, .killedBeforeSync])
  func torn(_ fault: FaultyDisk.Fault) throws {
    let world = try World()
    for _ in 0..<8 {
      for _ in 0..<3 { try world.write() }
      try world.disk.set(fault)
      #expect(try world.write() == nil)
      #expect(try world.server.process.child.exitStatus() == 128 + SIGKILL)
      try world.disk.set(.none)
      try world.server.start()
      try world.settle("\(fault)")
    }
  }

  /// The number of faults: `KEYWAY_FAULT_ROUNDS` for a longer run.
  private static let rounds = ProcessInfo.processInfo.environment["KEYWAY_FAULT_ROUNDS"].flatMap { Int($0) } ?? 30

  @Test("Faults that come and go at random, with kills between them, take nothing that was acknowledged")
  func random() throws {
    var random = SplitMix64(seed: seed)
    // Snapshots and compaction have to cope with the faults too.
    let world = try World(settings: ["snapshot.revisions": "10", "history.revisions": "20"])
    for round in 0..<Self.rounds {
      let fault = FaultyDisk.Fault.allCases.randomElement(using: &random) ?? .none
      for _ in 0..<Int.random(in: 1...15, using: &random) { try world.write() }
      try world.disk.set(fault)
      var isUp = true
      for _ in 0..<Int.random(in: 1...4, using: &random) where isUp { isUp = try world.write() != nil }
      let isKilled = isUp && Int.random(in: 0..<3, using: &random) == 0
      if isKilled { try world.server.end(SIGKILL) }
      if !isUp { _ = try world.server.process.child.exitStatus() }
      try world.disk.set(.none)
      if isKilled || !isUp { try world.server.start() }
      let note: Comment = "seed \(seed), round \(round), \(fault), killed: \(isKilled), ended: \(!isUp)"
      if isUp { try world.check(note) } else { try world.settle(note) }
      let resumes = try world.resumes()
      #expect(resumes, "\(note): \(world.refusal)")
    }
  }
}
