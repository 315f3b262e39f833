import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

@Suite("Coming back to a live query")
struct LiveQueryResumeTests {
  private static let target = Staff.target(
    "Employee", ["filter": "salary > 10", "sort": "-salary", "section": "department.name", "limit": "4"])
  private static let summedUp = Staff.target(
    "Employee",
    [
      "filter": "salary > 10", "section": "department.name", "limit": "3",
      "keys": "salary,department.name,department.employees.@count",
      "aggregate": "@count,@sum.salary,@avg.salary,@min.salary,@max.name",
    ])
  private static let summedUpAsOne = Staff.target(
    "Employee",
    ["filter": "salary > 10", "limit": "2", "keys": "name", "aggregate": "@sum.salary,@max.department.name"])

  @Test(
    "A client that resumes with any id gets byte for byte what an unbroken stream got", arguments: [true, false],
    [target, summedUp, summedUpAsOne])
  func resumeEqualsUnbroken(_ isWatched: Bool, _ target: String) throws {
    var random = SplitMix64(seed: seed)
    let server = try Staff.server()
    let start = try server.revision
    var unbroken: WireStream? = try server.client.stream(target)
    _ = try unbroken?.next()
    var world = StaffWriter(server)
    for _ in 0..<40 { try world.write(&random) }
    try server.client.must("PUT", "/v1/objects/Employee/end", body: #"{"salary":1000}"#)
    let end = try server.revision
    let events = try #require(try unbroken?.events { $0.json["revision"].whole == end })
    if !isWatched {
      unbroken?.socket.close()
      unbroken = nil
      #expect(Deadline().awaits { server.openQueries == 0 })
    }
    for since in start...end {
      let expected = events.filter { ($0.json["revision"].whole ?? 0) > since }
      let resumed = try server.client.stream(target, ["Last-Event-ID": "\(server.epoch)-\(since)"])
      let told = try expected.map { _ in try resumed.next().withoutRetry }
      #expect(told == expected, "seed \(seed), since \(since)")
      if since == end { #expect(try resumed.block()?.withoutRetry.lines.isEmpty == true) }
      resumed.socket.close()
    }
  }

  @Test("Without missed changes nothing is sent, and the next change is", arguments: [true, false])
  func nothing(_ isWatched: Bool) throws {
    let server = try Staff.server()
    let other = isWatched ? try server.client.stream(Self.target) : nil
    let cursor = "\(server.epoch)-\(try server.revision)"
    for number in 0..<3 { try server.set("Employee/2/name", "\"\(number)\"") }
    let stream = try server.client.stream("\(Self.target)&since=\(cursor)")
    let first = try #require(try stream.block())
    #expect(first.retry != nil)
    #expect(first.withoutRetry.lines.isEmpty)
    try server.set("Employee/1/salary", "77")
    let event = try stream.next()
    #expect(event.name == "content")
    #expect(event.id == "\(server.epoch)-\(try server.revision)")
    withExtendedLifetime(other) {}
  }

  @Test("A cursor of no use is a reset with its reason, followed by everything")
  func reset() throws {
    let server = try Staff.server { $0.store.historyRevisions = 3 }
    for number in 20..<26 { try server.set("Employee/1/salary", "\(number)") }
    let revision = try server.revision
    let cursors = [
      ("x", "epoch"), ("zzzz-1", "epoch"), ("\(server.epoch)-\(revision + 1)", "epoch"),
      ("\(server.epoch)-\(revision - 4)", "compacted"),
    ]
    for (cursor, reason) in cursors {
      let stream = try server.client.stream(Self.target, ["Last-Event-ID": cursor])
      #expect(
        try stream.next().withoutRetry.text
          == "event: reset\ndata: {\"reason\":\"\(reason)\",\"revision\":\(revision)}")
      let results = try stream.next()
      #expect(results.name == "results")
      #expect(results.id == "\(server.epoch)-\(revision)")
      #expect(results.json["initial"] == .bool(true))
      #expect(results.json["count"].whole == 4)
    }
    let kept = try server.client.stream(Self.target, ["Last-Event-ID": "\(server.epoch)-\(revision - 3)"])
    #expect(try (0..<3).map { _ in try kept.next().name } == ["content", "content", "content"])
  }

  @Test("More than streams.replayBytes is a reset by overflow")
  func overflow() throws {
    let server = try Staff.server { $0.streams.replayBytes = 600 }
    let cursor = "\(server.epoch)-\(try server.revision)"
    for number in 20..<26 { try server.set("Employee/1/salary", "\(number)") }
    let stream = try server.client.stream(Self.target, ["Last-Event-ID": cursor])
    #expect(try stream.next().json["reason"].text == "overflow")
    #expect(try stream.next().name == "results")
  }

  @Test("A stream that is cut again and again in the midst of writing loses and doubles nothing")
  func cut() throws {
    var random = SplitMix64(seed: seed)
    let server = try Staff.server()
    let unbroken = try server.client.stream(Self.target)
    _ = try unbroken.next()
    var cursor = "\(server.epoch)-\(try server.revision)"
    var told: [WireEvent] = []
    var world = StaffWriter(server)
    for _ in 0..<15 {
      for _ in 0..<4 { try world.write(&random) }
      // A commit that certainly sends an event, so that there is always something to read.
      let salary = Int.random(in: 1000..<1_000_000_000, using: &random)
      try server.client.must("PUT", "/v1/objects/Employee/end", body: #"{"salary":\#(salary)}"#)
      let revision = try server.revision
      let stream = try server.client.stream(Self.target, ["Last-Event-ID": cursor])
      told += try stream.events { $0.json["revision"].whole == revision }.map(\.withoutRetry)
      cursor = told.last?.id ?? cursor
      if Bool.random(using: &random) { stream.socket.reset() } else { stream.socket.close() }
    }
    #expect(try told.map { _ in try unbroken.next() } == told, "seed \(seed)")
  }
}
