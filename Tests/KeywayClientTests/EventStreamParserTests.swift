import TestKit
import Testing

@testable import KeywayClient

@Suite("The parser of event streams")
struct EventStreamParserTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var stream: String
    var events: [ServerSentEvent]
    var retry: Int?
  }

  private static func event(_ data: String, id: String = "", event: String = "message") -> ServerSentEvent {
    ServerSentEvent(id: id, event: event, data: data)
  }

  /// Cases of section 9.2.6 of the HTML standard, and those in which parsers are known to differ.
  static let cases = [
    Case(
      testDescription: "data lines are joined by a line feed",
      stream: "data: YHOO\ndata: +2\ndata: 10\n\n", events: [event("YHOO\n+2\n10")]),
    Case(
      testDescription: "comments are skipped, an id persists, and an empty id resets it",
      stream: ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\n\nid\n\ndata:  third event\n\n",
      events: [event("first event", id: "1"), event("second event", id: "1"), event(" third event")]),
    Case(
      testDescription: "empty data lines make an event, and an unfinished block none",
      stream: "data\n\ndata\ndata\n\ndata:", events: [event(""), event("\n")]),
    Case(
      testDescription: "one space behind the colon belongs to the colon",
      stream: "data:test\n\ndata: test\n\n", events: [event("test"), event("test")]),
    Case(
      testDescription: "CR, LF and CR LF all end a line",
      stream: "data: a\r\rdata: b\r\n\r\ndata: c\n\ndata: d\r\n\n", events: ["a", "b", "c", "d"].map { event($0) }),
    Case(
      testDescription: "one byte order mark at the start is dropped, and a second one is not",
      stream: "\u{FEFF}data: a\n\n\u{FEFF}data: b\n\n", events: [event("a")]),
    Case(
      testDescription: "an id with NUL is ignored",
      stream: "id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", events: [event("a", id: "1"), event("b", id: "1")]),
    Case(
      testDescription: "retry takes digits only",
      stream: "retry: 1500\ndata: a\n\nretry: 15s\ndata: b\n\nretry:\ndata: c\n\n",
      events: [event("a"), event("b"), event("c")], retry: 1500),
    Case(
      testDescription: "the type is of one block, and a block without data is none",
      stream: "event: change\ndata: {}\n\nevent: lost\n\ndata: x\n\n",
      events: [event("{}", event: "change"), event("x")]),
    Case(
      testDescription: "field names are case sensitive and unknown ones ignored",
      stream: "Data: a\nfoo: b\ndata : c\ndata: ä→\u{1F600}\n\n", events: [event("ä→\u{1F600}")]),
  ]

  @Test("reads a stream that comes in one piece", arguments: cases)
  func whole(_ example: Case) throws {
    var parser = EventStreamParser()
    #expect(try parser.parse(Array(example.stream.utf8)) == example.events)
    #expect(parser.retryMilliseconds == example.retry)
  }

  @Test("reads the same events however the stream is cut", arguments: cases)
  func split(_ example: Case) throws {
    for seed in UInt64(1)...200 {
      var generator = SplitMix64(seed: seed)
      var parser = EventStreamParser()
      var events: [ServerSentEvent] = []
      var rest = Array(example.stream.utf8)[...]
      while !rest.isEmpty {
        let piece = rest.prefix(Int.random(in: 0...4, using: &generator))
        rest = rest[piece.endIndex...]
        events += try parser.parse(Array(piece))
      }
      #expect(events == example.events, "seed \(seed)")
    }
  }

  @Test("keeps the id of a block without data")
  func idWithoutData() throws {
    var parser = EventStreamParser(lastEventID: "k-1")
    #expect(try parser.parse(Array("id: k-2\n\n".utf8)).isEmpty)
    #expect(parser.lastEventID == "k-2")
  }

  @Test("does not take the id of a block that is cut off")
  func idOfUnfinishedBlock() throws {
    var parser = EventStreamParser(lastEventID: "k-1")
    _ = try parser.parse(Array("id: k-2\ndata: half".utf8))
    #expect(parser.lastEventID == "k-1")
  }

  @Test("refuses an event over the limit, in one line or in many", arguments: ["data: 123456789012345", "data: 12\n"])
  func limit(_ text: String) {
    var parser = EventStreamParser(maximumEventBytes: 16)
    #expect(throws: ClientError.eventTooLarge(limitBytes: 16)) {
      for _ in 0..<10 { _ = try parser.parse(Array(text.utf8)) }
    }
  }
}
