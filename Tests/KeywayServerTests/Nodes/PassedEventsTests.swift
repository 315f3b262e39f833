import Foundation
import KeyValueModel
import TestKit
import Testing

@testable import Cluster
@testable import KeywayServer

@Suite("Streams of other nodes, cut into whole events") struct PassedEventsTests {
  /// Encodes a text in chunks of random sizes, with the last chunk.
  private static func chunks(_ text: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = text[...]
    while !rest.isEmpty {
      let piece = rest.prefix(Int.random(in: 1...40, using: &random))
      rest = rest.dropFirst(piece.count)
      let mark = Bool.random(using: &random) ? ";a=b" : ""
      bytes += Array("\(String(piece.count, radix: 16))\(mark)\r\n".utf8) + piece + Array("\r\n".utf8)
    }
    return bytes + Array("0\r\n\r\n".utf8)
  }

  @Test("From pieces of any size, whole events are sent, in order and without delay; the last id is known")
  func pieces() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      var events: [(text: String, revision: Revision?)] = []
      for number in 0..<UInt64.random(in: 1...20, using: &random) {
        let hasID = Int.random(in: 0..<4, using: &random) > 0
        let id = hasID ? "id: epoch-\(number)\n" : ""
        let data = String(repeating: "id: x-9 ", count: Int.random(in: 0..<9, using: &random))
        events.append(("\(id)event: change\ndata: {\(data)}\n\n", hasID ? number : nil))
      }
      let bytes = Self.chunks(Array(events.map(\.text).joined().utf8), &random)
      var (chunks, passed) = (ChunkedContent(), PassedEvents(limit: 1_000))
      var out = ""
      var sent = 0
      var index = 0
      while index < bytes.count {
        let count = min(Int.random(in: 1...60, using: &random), bytes.count - index)
        var piece: [UInt8] = []
        try chunks.take(bytes[index..<index + count], into: &piece)
        let whole = String(decoding: try passed.take(piece[...]), as: UTF8.self)
        index += count
        out += whole
        // The events that are complete by now, by a simple reader of chunks.
        let content = Self.content(bytes[..<index])
        var end = 0
        sent = 0
        for event in events {
          guard end + event.text.utf8.count <= content else { break }
          end += event.text.utf8.count
          sent += 1
        }
        #expect(out == events[..<sent].map(\.text).joined(), "seed \(seed)")
        #expect(passed.revision == events[..<sent].compactMap(\.revision).last ?? 0, "seed \(seed)")
      }
      #expect(chunks.isFinished && sent == events.count && passed.pendingBytes == 0)
    }
  }

  @Test("Events leave in order as far as a node has come, those without an id with those before them")
  func held() {
    let events = [(3, "id: e-3\ndata: a\n\n"), (3, "retry: 1\n\n"), (5, "id: e-5\ndata: b\n\n"), (5, "data: c\n\n")]
    let bytes = events.flatMap { Array($0.1.utf8) }
    for revision in 0...6 {
      let count = events.filter { $0.0 <= revision }.reduce(0) { $0 + $1.1.utf8.count }
      let prefix = PassedEvents.prefix(of: bytes, notAfter: Revision(revision))
      #expect(prefix.count == count)
      #expect(prefix.last == (revision < 3 ? nil : revision < 5 ? 3 : 5))
    }
  }

  /// Returns the number of content bytes in chunks, the last of which may be incomplete.
  private static func content(_ bytes: ArraySlice<UInt8>) -> Int {
    var (index, count) = (0, 0)
    while let end = bytes[index...].firstIndex(of: 10) {
      let size =
        Int(String(decoding: bytes[index..<end].prefix { $0 != 59 && $0 != 13 }, as: UTF8.self), radix: 16) ?? 0
      guard size > 0 else { break }
      count += min(size, bytes.count - end - 1)
      index = end + 1 + size + 2
      if index >= bytes.count { break }
    }
    return count
  }

  @Test(
    "Bytes that are not in chunks end a stream",
    arguments: ["x\r\n", "3\r\nabcd\r\n", "+3\r\n"])
  func defects(text: String) {
    var (chunks, content) = (ChunkedContent(), [UInt8]())
    #expect(throws: NodeFault.self) { try chunks.take(Array(text.utf8)[...], into: &content) }
  }

  @Test("An event that is too long ends a stream")
  func longEvents() {
    var passed = PassedEvents(limit: 100)
    #expect(throws: NodeFault.self) {
      for _ in 0..<11 { _ = try passed.take(Array("0123456789".utf8)[...]) }
    }
  }
}
