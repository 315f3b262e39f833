import Glibc
import TestKit
import Testing

@testable import HTTPServer

/// The reader in front of libmicrohttpd, fed from a source that delivers a request in pieces.
@Suite struct RequestGateTests {
  private static let host = "Host: a\r\n"
  private static let limits = RequestHeadReader.Limits(memoryBytes: 8192, bodyBytes: 1_048_576)

  /// Reads as libmicrohttpd does, from a kernel that receives pieces one after the other.
  private struct Reading {
    var gate = RequestGate(limits: RequestGateTests.limits)
    var handedOn: [UInt8] = []
    var fault: RequestFault?

    /// Hands a piece to the kernel, and reads until the kernel would have to report more.
    mutating func receive(_ piece: ArraySlice<UInt8>, bufferBytes: Int) {
      var piece = piece
      var isReadReady = true
      while isReadReady, fault == nil {
        var bytes = [UInt8](repeating: 0, count: bufferBytes)
        let reception = bytes.withUnsafeMutableBytes { buffer in
          gate.receive(into: buffer) { buffer in
            guard !piece.isEmpty else { return -Int(EAGAIN) }
            let count = min(piece.count, buffer.count)
            for index in 0..<count { buffer[index] = piece.removeFirst() }
            return count
          }
        }
        switch reception {
        case .bytes(let count):
          handedOn += bytes[..<count]
          isReadReady = count == bufferBytes || gate.leavesBytes
        case .refused(let fault): self.fault = fault
        case .nothing, .failed: isReadReady = gate.leavesBytes
        }
      }
      if fault == nil { #expect(piece.isEmpty) }
    }

    var text: String { String(decoding: handedOn, as: UTF8.self) }

    /// Returns true if this text was handed on, followed only by the empty lines that fill a buffer up.
    func gives(_ text: String) -> Bool {
      handedOn.starts(with: text.utf8) && handedOn.dropFirst(text.utf8.count).allSatisfy { $0 == .lineFeed }
    }
  }

  private func read(_ text: String, pieces: [Int] = [], bufferBytes: Int = 4096) -> Reading {
    var reading = Reading()
    var rest = Array(text.utf8)[...]
    for count in pieces where !rest.isEmpty {
      reading.receive(rest.prefix(count), bufferBytes: bufferBytes)
      rest = rest.dropFirst(count)
    }
    if !rest.isEmpty { reading.receive(rest, bufferBytes: bufferBytes) }
    return reading
  }

  private static let good = [
    "GET / HTTP/1.1\r\n\(host)\r\n",
    "\r\n\r\nOPTIONS * HTTP/1.0\r\n\r\n",
    "GET http://a/b?c HTTP/1.1\r\n\(host)X-A:b\r\nX-B:\t c d\r\nX-C:\r\n\r\n",
    "PUT /ü HTTP/1.1\r\n\(host)Content-Length: 0005\r\n\r\n\r\n\r\n1",
    "POST / HTTP/1.1\r\n\(host)transfer-encoding:  Chunked\r\n\r\n"
      + "A;x=\"y\"\r\n0123456789\r\n002\r\n\r\n\r\n000\r\n\r\n",
  ]

  private static let bad: [(String, RequestFault)] = [
    ("GET  / HTTP/1.1\r\n", .malformed(.target)),
    ("GET / HTTP/1.1\r\nHost : a\r\n", .malformed(.fieldName)),
    ("GET / HTTP/1.1\r\n\(host)X: a\r\n b\r\n\r\n", .malformed(.foldedLine)),
    ("GET / HTTP/1.1\n\(host)\n", .malformed(.lineEnd)),
    ("GET / HTTP/1.1\r\n\(host)X: a\rb\r\n\r\n", .malformed(.lineEnd)),
    ("GET / HTTP/1.1\r\n\(host)X: a\u{0}b\r\n\r\n", .malformed(.fieldValue)),
    ("GET / HTTP/1.1\r\n\(host)\(host)\r\n", .malformed(.repeatedHost)),
    ("GET / HTTP/1.1\r\n\r\n", .malformed(.missingHost)),
    ("GET / HTTP/1.2\r\n", .unsupportedVersion),
    ("PUT / HTTP/1.1\r\n\(host)Content-Length: 1, 1\r\n", .malformed(.contentLength)),
    ("PUT / HTTP/1.1\r\n\(host)Content-Length: 1\r\ncontent-length: 1\r\n", .malformed(.repeatedContentLength)),
    ("PUT / HTTP/1.1\r\n\(host)Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", .malformed(.bothLengths)),
    ("PUT / HTTP/1.1\r\n\(host)Transfer-Encoding: gzip, chunked\r\n\r\n", .unsupportedTransferCoding),
    ("PUT / HTTP/1.1\r\n\(host)Content-Encoding: gzip\r\n\r\n", .encodedBody),
    ("\u{16}\u{3}\u{1}", .malformed(.method)),
  ]

  @Test func goodRequestsAreHandedOnHoweverTheyAreCut() {
    let text = Self.good.joined()
    #expect(read(text).gives(text))
    let count = text.utf8.count
    for first in 1..<count { #expect(read(text, pieces: [first]).gives(text), "cut at \(first)") }
    #expect(read(text, pieces: Array(repeating: 1, count: count)).gives(text))
    for bufferBytes in 1..<64 { #expect(read(text, bufferBytes: bufferBytes).gives(text), "\(bufferBytes)") }
  }

  @Test func badRequestsAreRefusedBehindTheGoodOnesHoweverTheyAreCut() {
    for (request, fault) in Self.bad {
      for before in ["", Self.good[0], Self.good[4]] {
        let text = before + request
        for first in 0..<text.utf8.count {
          let reading = read(text, pieces: first == 0 ? [] : [first], bufferBytes: 512)
          #expect(reading.fault == fault && reading.gives(before), "\(request.debugDescription) cut at \(first)")
        }
      }
    }
  }

  @Test func aHeadThatIsNotWholeStaysAndIsKnown() {
    var reading = read("GET / HTTP/1.1\r\n\(Self.host)")
    #expect(reading.handedOn.isEmpty && reading.gate.hasPartOfHead)
    reading.receive(Array("\r\n".utf8)[...], bufferBytes: 4096)
    #expect(reading.text == Self.good[0] && !reading.gate.hasPartOfHead)
  }

  @Test func aBodyGoesOnAsItComes() {
    let reading = read("PUT / HTTP/1.1\r\n\(Self.host)Content-Length: 9\r\n\r\n1234")
    #expect(reading.text.hasSuffix("\r\n\r\n1234"))
  }

  @Test func whiteSpaceBehindAValueIsMovedBeforeIt() {
    let reading = read("PUT / HTTP/1.1\r\nHost: a \t\r\nTransfer-Encoding:chunked \r\n\r\n")
    #expect(reading.text == "PUT / HTTP/1.1\r\nHost:   a\r\nTransfer-Encoding: chunked\r\n\r\n")
  }

  @Test func trailersAreJudgedAndNotHandedOn() {
    let head = "PUT / HTTP/1.1\r\n\(Self.host)Transfer-Encoding: chunked\r\n\r\n0\r\n"
    for cut in 1..<(head.utf8.count + 12) {
      let reading = read(head + "X: y\r\nZ: 1\r\n\r\n" + Self.good[0], pieces: [cut])
      #expect(reading.text.hasPrefix(head + "\r\n\n\n"))
      #expect(reading.text.hasSuffix("\n\n" + Self.good[0]), "cut at \(cut)")
      #expect(!reading.text.contains("X: y"))
      #expect(read(head + "X : y\r\n\r\n", pieces: [cut]).fault == .malformed(.fieldName))
    }
  }

  @Test(arguments: [
    ("", RequestDefect.chunkSize), ("x", .chunkSize), (" 1", .chunkSize), ("1 ", .chunkSize), ("0x1", .chunkSize),
    ("-1", .chunkSize), ("+1", .chunkSize), ("1\n", .chunkSize), ("1\r\r\n", .chunkSize), ("1;a\u{0}\r\n", .chunkSize),
    ("1234567890abcdef", .chunkSize), ("1;\(String(repeating: "x", count: 300))\r\n", .chunkSize),
    ("1\r\nab", .chunkEnd), ("1\r\na\n", .chunkEnd), ("1\r\na\rb", .chunkEnd), ("1\r\na\r\n\r\n", .chunkSize),
  ]) func chunksAreReadStrictly(text: String, defect: RequestDefect) {
    let head = "PUT / HTTP/1.1\r\n\(Self.host)Transfer-Encoding: chunked\r\n\r\n"
    let whole = head + text + "\r\n"
    for cut in head.utf8.count..<whole.utf8.count {
      #expect(read(whole, pieces: [cut]).fault == .malformed(defect), "cut at \(cut)")
    }
  }

  @Test func whatDoesNotFitIsRefusedBeforeItIsWhole() {
    let line = "GET /\(String(repeating: "a", count: 9000))"
    #expect(read(line).fault == .targetTooLong(limit: 8192))
    let field = "GET / HTTP/1.1\r\n\(Self.host)X: \(String(repeating: "a", count: 9000))"
    #expect(read(field, pieces: [10, 4000, 4000]).fault == .headersTooLarge(limit: 8192))
    let fields = (0..<200).map { "X\($0): a\r\n" }.joined()
    #expect(read("GET / HTTP/1.1\r\n\(Self.host)\(fields)\r\n").fault == .headersTooLarge(limit: 8192))
    let cookies = String(repeating: "a=b;", count: 200)
    #expect(read("GET / HTTP/1.1\r\n\(Self.host)Cookie: \(cookies)\r\n\r\n").fault == .headersTooLarge(limit: 8192))
    let endless = "PUT / HTTP/1.1\r\n\(Self.host)Content-Length: 99999999999999999999\r\n\r\n"
    #expect(read(endless).fault == .bodyTooLarge(limit: 1_048_576))
  }

  @Test func randomPipelinesComeThroughAnyCuts() {
    var generator = SplitMix64(seed: seed)
    for round in 0..<300 {
      let requests = (0..<Int.random(in: 1...40, using: &generator)).compactMap { _ in
        Self.good.randomElement(using: &generator)
      }
      let isBad = Bool.random(using: &generator)
      let text = requests.joined()
      let bad = isBad ? Self.bad.randomElement(using: &generator) : nil
      let pieces = (0..<200).map { _ in Int.random(in: 1...90, using: &generator) }
      let reading = read(
        text + (bad?.0 ?? ""), pieces: Bool.random(using: &generator) ? pieces : [],
        bufferBytes: Int.random(in: 1...300, using: &generator))
      #expect(reading.gives(text) && reading.fault == bad?.1, "round \(round), seed \(seed)")
    }
  }
}

/// The fields that are read from the head of a refused request.
@Suite struct HeadMarksTests {
  private func marks(of pieces: [ArraySlice<UInt8>]) -> HeadMarks {
    var marks = HeadMarks()
    for piece in pieces { Array(piece).withUnsafeBytes { marks.read($0) } }
    return marks
  }

  @Test func theyAreFoundAmongMistakesHoweverTheHeadIsCut() {
    let text =
      "\r\nGET /\u{1} HTTP/9\r\nbad line\r\n folded: x\r\nX-REQUEST-ID: \t one \r\norigin:https://a\r\n: y\n\r\n"
      + "Origin: b\r\n"
    let bytes = Array(text.utf8)
    for cut in 0...bytes.count {
      let marks = marks(of: [bytes[..<cut], bytes[cut...]])
      #expect(marks.requestID?.text == "one" && marks.origin == "https://a" && marks.isFinished, "cut at \(cut)")
    }
    #expect(marks(of: bytes.indices.map { bytes[$0...$0] }).origin == "https://a")
  }

  @Test func theFirstLineHasNoneAndWhatComesTwiceIsNone() {
    let one = marks(of: [Array("Origin: a\r\nOrigin: b\r\nX-Request-Id: a b\r\n".utf8)[...]])
    #expect(one.origin == "b" && one.requestID == nil && !one.isFinished)
    let two = marks(of: [Array("G\r\nOrigin: a\r\nX-Request-Id: a\r\nOrigin: a\r\nX-Request-Id: a\r\n\r\n".utf8)[...]])
    #expect(two.origin == nil && two.requestID == nil && two.isFinished)
  }

  @Test func aLongLineIsPassedOverAndAHeadIsReadToItsLimit() {
    let long = Array("GET /\(String(repeating: "a", count: 30_000)) HTTP/1.1\r\nX-Request-Id: a\r\n".utf8)
    #expect(marks(of: [long[...]]).requestID?.text == "a")
    let endless = [UInt8](repeating: UInt8(ascii: "a"), count: HeadMarks.byteLimit) + Array("\r\nOrigin: a\r\n".utf8)
    let read = marks(of: [endless[..<10_000], endless[10_000...]])
    #expect(read.isFinished && read.origin == nil)
  }
}
