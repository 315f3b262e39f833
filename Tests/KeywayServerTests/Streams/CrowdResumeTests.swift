import Foundation
import KeyValueModel
import KeywayServer
import Store
import Support
import TestKit
import Testing

@Suite("A crowd that comes back in the midst of writing")
struct CrowdResumeTests {
  private static let topic = "/v1/objects/Employee/1/salary,department.name?options=old,new"
  private static let query = Staff.target("Employee", ["filter": "salary > 10", "sort": "-salary", "limit": "4"])
  private static let cells = """
    {"cells":{"a":{"object":"Employee/1","keyPaths":["salary","department.name"],"options":["old","new"]},
    "b":{"object":"Department/1","keyPaths":["total"]},
    "q":{"entity":"Employee","filter":"salary > 10","sort":"-salary","limit":4}}}
    """
  private static let kinds = 3

  private static func open(_ kind: Int, _ client: WireClient, since cursor: String? = nil) throws -> WireStream {
    var headers = ["Content-Type": "application/json"]
    headers["Last-Event-ID"] = cursor
    switch kind {
    case 0: return try client.stream(topic, headers)
    case 1: return try client.stream(query, headers)
    default: return try client.stream("/v1/streams", headers, method: "POST", body: cells)
    }
  }

  /// Reads the events of revisions after `since`, up to the last block of the revision `end`.
  private static func events(_ stream: WireStream, after since: Int, to end: Int) throws -> [WireEvent] {
    try stream.events { $0.json["revision"].whole == end && $0.id != nil && $0.name != "open" }
      .filter { $0.name != "open" && $0.json["revision"].whole ?? 0 > since }.map(\.withoutRetry)
  }

  /// The events of a resumed stream.
  private struct Told: Sendable {
    let kind: Int
    let since: Int
    let lines: [[String]]
  }

  @Test("Each client gets byte for byte what an unbroken stream got, whatever streams share")
  func exact() throws {
    let server = try Staff.server()
    let (port, epoch) = (server.client.port, server.epoch)
    let start = try server.revision
    let unbroken = try (0..<Self.kinds).map { try Self.open($0, server.client) }
    let present = Locked<(revision: Int, isFinished: Bool)>((start, false))
    let told = Locked<[Told]>([])
    let failures = Locked<[String]>([])
    let group = DispatchGroup()
    for index in 0..<3 {
      group.enter()
      Thread.detachNewThread {
        defer { group.leave() }
        do {
          let results = try Self.comeBack(WireClient(port: port), epoch, start, present, seed &+ UInt64(index))
          told.withLock { $0 += results }
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    try Self.write(server, present)
    #expect(group.wait(timeout: .now() + Deadline.patienceSeconds) == .success)
    #expect(failures.withLock { $0 }.isEmpty, "seed \(seed)")
    let end = present.withLock { $0.revision }
    let expected = try unbroken.map { try Self.events($0, after: start, to: end) }
    for told in told.withLock({ $0 }) {
      let lines = expected[told.kind].filter { $0.json["revision"].whole ?? 0 > told.since }.map(\.lines)
      #expect(told.lines == lines, "seed \(seed), kind \(told.kind), since \(told.since)")
    }
    #expect(told.withLock { $0.count } == 3 * 20)
  }

  private static func write(_ server: TestServer, _ present: Locked<(revision: Int, isFinished: Bool)>) throws {
    var random = SplitMix64(seed: seed)
    var world = StaffWriter(server)
    world.keeps = ["Employee/1", "Department/1"]
    for _ in 0..<200 {
      try world.write(&random)
      let revision = Int(server.server.store.snapshot.revision)
      present.withLock { $0.revision = revision }
    }
    try server.set("Employee/1/salary", "1000")
    let revision = Int(server.server.store.snapshot.revision)
    present.withLock { $0 = (revision, true) }
  }

  /// Reconnects repeatedly, often to the same revision as others. Reads everything once no more is written.
  private static func comeBack(
    _ client: WireClient, _ epoch: String, _ start: Int, _ present: Locked<(revision: Int, isFinished: Bool)>,
    _ seed: UInt64
  ) throws -> [Told] {
    var random = SplitMix64(seed: seed)
    var streams: [(kind: Int, since: Int, stream: WireStream)] = []
    for number in 0..<20 {
      let missed = present.withLock { $0.revision } - start
      // Before the present revision: once writing has ended, a client at the present would receive nothing.
      let since = start + (missed == 0 ? 0 : Int.random(in: 0..<missed, using: &random) / 10 * 10)
      let stream = try open(number % kinds, client, since: "\(epoch)-\(since)")
      streams.append((number % kinds, since, stream))
    }
    guard Deadline().awaits({ present.withLock { $0.isFinished } }) else {
      throw LoopbackError(.connectionClosed)
    }
    let end = present.withLock { $0.revision }
    return try streams.map { kind, since, stream in
      Told(kind: kind, since: since, lines: try events(stream, after: since, to: end).map(\.lines))
    }
  }

  @Test("Missed events are computed once for streams that missed the same, and for each if nothing may be cached")
  func shared() throws {
    for bytes in [1 << 20, 0] {
      let server = try Staff.server {
        $0.streams.resumedBytes = bytes
        $0.store.resumedRows = bytes
        $0.store.resumedRevisions = bytes
      }
      let cursor = "\(server.epoch)-\(try server.revision)"
      for number in 20..<40 { try server.set("Employee/1/salary", "\(number)") }
      for kind in 0..<Self.kinds {
        var first: [WireEvent]?
        for _ in 0..<4 {
          let stream = try Self.open(kind, server.client, since: cursor)
          let events = try Self.events(stream, after: 0, to: try server.revision)
          #expect(events.count >= 20)
          #expect(first ?? events == events)
          first = events
        }
      }
    }
  }
}
