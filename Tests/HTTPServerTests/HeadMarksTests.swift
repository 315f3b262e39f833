import Testing

@testable import HTTPServer

/// What is read of the head of a request that is refused.
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
      #expect(marks.requestID?.text == "one" && marks.origin == "https://a" && marks.isOver, "cut at \(cut)")
    }
    #expect(marks(of: bytes.indices.map { bytes[$0...$0] }).origin == "https://a")
  }

  @Test func theFirstLineHasNoneAndWhatComesTwiceIsNone() {
    let one = marks(of: [Array("Origin: a\r\nOrigin: b\r\nX-Request-Id: a b\r\n".utf8)[...]])
    #expect(one.origin == "b" && one.requestID == nil && !one.isOver)
    let two = marks(of: [Array("G\r\nOrigin: a\r\nX-Request-Id: a\r\nOrigin: a\r\nX-Request-Id: a\r\n\r\n".utf8)[...]])
    #expect(two.origin == nil && two.requestID == nil && two.isOver)
  }

  @Test func aLongLineIsPassedOverAndAHeadIsReadToItsLimit() {
    let long = Array("GET /\(String(repeating: "a", count: 30_000)) HTTP/1.1\r\nX-Request-Id: a\r\n".utf8)
    #expect(marks(of: [long[...]]).requestID?.text == "a")
    let endless = [UInt8](repeating: UInt8(ascii: "a"), count: HeadMarks.byteLimit) + Array("\r\nOrigin: a\r\n".utf8)
    let read = marks(of: [endless[..<10_000], endless[10_000...]])
    #expect(read.isOver && read.origin == nil)
  }
}
