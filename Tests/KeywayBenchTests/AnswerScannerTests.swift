import TestKit
import Testing

@testable import keyway_bench

@Suite("The load generator's reading of answers")
struct AnswerScannerTests {
  private static let body = #"{"SET":[true,"OK"]}"#
  private static let answer = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 19\r\nDate: now\r\n\r\n" + body

  private static func take(_ text: some Sequence<UInt8>, _ scanner: inout AnswerScanner) -> AnswerScanner.Outcome {
    Array(text).withUnsafeBufferPointer { scanner.take($0) }
  }

  private static func outcome(_ text: String) -> AnswerScanner.Outcome {
    var scanner = AnswerScanner()
    return take(text.utf8, &scanner)
  }

  @Test(
    "finds the status and the length, in either case and without a body",
    arguments: [
      (answer, 200, 19), ("HTTP/1.1 503 No\r\ncontent-length:0\r\n\r\n", 503, 0),
      ("HTTP/1.1 201 Created\r\nCONTENT-LENGTH:   2  \r\nX: content-length: 7\r\n\r\n{}", 201, 2),
      ("HTTP/1.0 200\nContent-Length: 1\n\nx", 200, 1), ("HTTP/1.1 204 No Content\r\n\r\n", 204, 0),
      ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, 5),
      ("HTTP/1.1 200 OK\r\nContent-Lengths: 9\r\nContent-Length: 1\r\n\r\nx", 200, 1),
    ] as [(String, Int, Int)])
  func answers(text: String, status: Int, bodyBytes: Int) {
    #expect(Self.outcome(text) == .answer(status: status, bodyBytes: bodyBytes))
  }

  @Test(
    "refuses what it does not read",
    arguments: [
      "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n", "\r\n\r\n", "HTTP/1.1 999 ?\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP",
    ])
  func malformed(text: String) {
    #expect(Self.outcome(text) == .malformed)
  }

  @Test("reads one answer after the other, wherever the pieces end")
  func pieces() {
    for seed in UInt64(1)...200 {
      var generator = SplitMix64(seed: seed)
      var scanner = AnswerScanner()
      for _ in 0..<3 {
        var rest = Array(Self.answer.utf8)[...]
        while !rest.isEmpty {
          let piece = rest.prefix(Int.random(in: 1...60, using: &generator))
          rest = rest.dropFirst(piece.count)
          let expected: AnswerScanner.Outcome = rest.isEmpty ? .answer(status: 200, bodyBytes: 19) : .unfinished
          #expect(Self.take(piece, &scanner) == expected, "seed \(seed)")
        }
      }
    }
  }
}

@Suite("The scanner for merged changes")
struct CoalescedScannerTests {
  private static let text = """
    data: {"revision":9,"changes":[{"new":"coalesced","coalesced":12},{"x":"\"coalesced\":","coalesced":3}]}

    data: {"coalesced":""coalesced":400,"coalesced":}
    """

  @Test("finds every one, wherever the pieces begin and end")
  func pieces() {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      var scanner = CoalescedScanner()
      var rest = Array(Self.text.utf8)[...]
      while !rest.isEmpty {
        let piece = Array(rest.prefix(Int.random(in: 1...20, using: &random)))
        rest = rest.dropFirst(piece.count)
        piece.withUnsafeBufferPointer { scanner.scan($0) }
      }
      #expect(scanner.changes == 3, "seed \(seed)")
      #expect(scanner.covered == 415, "seed \(seed)")
    }
  }
}

@Suite("The scanner for event IDs")
struct EventIDScannerTests {
  private static let text = """
    retry: 2000
    id: epoch-1
    event: change
    data: {"new":"id: no-2"}

    data: id: no-3
    xid: no-4
    id : no-5

    id: epoch-6
    id: epoch-7
    data: {}


    id: epoch-8
    data: {"cut":
    """

  @Test("keeps that of the last whole event, wherever the pieces begin and end")
  func pieces() {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      var scanner = EventIDScanner()
      var rest = Array(Self.text.utf8)[...]
      while !rest.isEmpty {
        let piece = Array(rest.prefix(Int.random(in: 1...20, using: &random)))
        rest = rest.dropFirst(piece.count)
        piece.withUnsafeBufferPointer { scanner.scan($0) }
      }
      #expect(String(decoding: scanner.last, as: UTF8.self) == "epoch-7", "seed \(seed)")
    }
  }

  @Test("has none before the first event has come to its end")
  func none() {
    var scanner = EventIDScanner()
    Array("id: epoch-1\ndata: {}\n".utf8).withUnsafeBufferPointer { scanner.scan($0) }
    #expect(scanner.last.isEmpty)
    Array("\n".utf8).withUnsafeBufferPointer { scanner.scan($0) }
    #expect(scanner.last == Array("epoch-1".utf8))
  }
}
