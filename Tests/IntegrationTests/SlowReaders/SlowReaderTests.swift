import KeyValueModel
import TestKit
import Testing

@Suite("A subscriber that does not read")
struct SlowReaderTests {
  private static let limit = 65_536
  private static let target = "/v1/objects/Note/1/text?options=new"

  /// Returns a text of 8 KiB that begins with a number.
  private static func text(_ number: Int) -> String { "\"\(number) \(String(repeating: "x", count: 8192))\"" }

  private func number(_ event: WireEvent) -> Int {
    let text = event.changes.first?["new"].text ?? ""
    return Int(text.prefix { $0 != " " }) ?? -1
  }

  @Test(
    "If it asked for that, it is disconnected at its limit, and can resume; the others get everything in order")
  func overflowing() throws {
    let server = try ServerProcess(settings: ["streams.pendingBytes": "\(Self.limit)"])
    let fast = try server.client.stream(Self.target)
    let slow = try server.client.stream(
      Self.target + "&context=slow&overflow=disconnect", receiveBufferBytes: 4096)
    let count = 1500
    var largest = 0
    for value in 1...count {
      try server.set("Note/1/text", Self.text(value))
      #expect(try number(fast.next()) == value)
      if value.isMultiple(of: 20) { largest = max(largest, try server.status["pendingBytes"].whole ?? 0) }
    }
    // The limit, the event that is being sent, and the one that exceeded the limit.
    #expect(largest <= Self.limit + 3 * 8500)
    var told: [Int] = []
    var end: String?
    while end == nil {
      do {
        guard let event = try slow.block(before: Deadline()) else {
          end = "closed"
          break
        }
        if event.name == "change" { told.append(number(event)) }
        if event.name == "bye" { end = event.data }
      } catch {
        end = "closed"
      }
    }
    #expect(end == #"{"reason":"overflow"}"# || end == "closed")
    #expect(told == Array(1..<told.count + 1))
    #expect(told.count < count)
    let cursor = try #require(slow.lastID)
    let back = try server.client.stream(Self.target, ["Last-Event-ID": cursor])
    while told.last != count { told.append(try number(back.next())) }
    #expect(told == Array(1...count))
  }

  @Test("It holds no more than its limit, and when it reads again it is told in one change what it missed")
  func coalescing() throws {
    let server = try ServerProcess(settings: ["streams.pendingBytes": "\(Self.limit)"])
    let fast = try server.client.stream(Self.target)
    let target = Self.target.replacing("=new", with: "=old,new")
    let slow = try server.client.stream(target + "&context=slow", receiveBufferBytes: 4096)
    let count = 600
    var largest = 0
    for value in 1...count {
      try server.set("Note/1/text", Self.text(value))
      #expect(try number(fast.next()) == value)
      if value.isMultiple(of: 20) { largest = max(largest, try server.status["pendingBytes"].whole ?? 0) }
    }
    #expect(largest <= Self.limit + 5 * 8500)
    var last = 0
    var merged = 0
    while last < count {
      let event = try slow.next()
      let change = try #require(event.changes.first)
      #expect(event.changes.count == 1)
      if last > 0 || change["old"].text?.hasPrefix("0") == true {
        #expect(change["old"].text?.prefix { $0 != " " } == "\(last)")
      }
      let covered = change["coalesced"].whole ?? 1
      if change["coalesced"].whole != nil { merged += 1 }
      #expect(number(event) == last + covered)
      last = number(event)
    }
    #expect(merged >= 1)
    try server.set("Note/1/text", Self.text(count + 1))
    let next = try slow.next()
    #expect(number(next) == count + 1)
    #expect(next.changes.first?["coalesced"].whole == nil)
  }

  @Test("If the history no longer reaches back to its id, it gets a reset, and the state")
  func compacted() throws {
    let server = try ServerProcess(settings: ["history.revisions": "10"])
    let stream = try server.client.stream(Self.target)
    try server.set("Note/1/text", Self.text(1))
    _ = try stream.next()
    let cursor = try #require(stream.lastID)
    stream.socket.reset()
    for value in 2...30 { try server.set("Note/1/text", Self.text(value)) }
    let back = try server.client.stream(Self.target, ["Last-Event-ID": cursor])
    #expect(try back.next().json["reason"].text == "compacted")
    #expect(try number(back.next()) == 30)
  }
}
