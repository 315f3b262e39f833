import TestKit
import Testing

@testable import KeywayServer

@Suite("Ranges of bytes") struct ByteRangeTests {
  @Test(
    "A field that is not a single range of bytes is ignored",
    arguments: [
      nil, "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=3-2", "bytes=0-1,4-5", "bytes=+1-2",
      "bytes=1-2x", "chunks=0-1", "bytes=--1", "bytes 0-1", "bytes=0x1-2", "bytes=٣-٤",
    ])
  func ignored(_ header: String?) {
    #expect(ByteRange(header, count: 10) == .all)
  }

  @Test("Numbers of any length are numbers")
  func longNumbers() {
    let many = String(repeating: "9", count: 60)
    #expect(ByteRange("bytes=2-\(many)", count: 10) == .part(2..<10))
    #expect(ByteRange("bytes=-\(many)", count: 10) == .part(0..<10))
    #expect(ByteRange("bytes=\(many)-", count: 10) == .unsatisfiable)
    #expect(ByteRange("Bytes = 0-0 ", count: 10) == .part(0..<1))
  }

  /// Returns the byte positions of a file that a range selects, found by testing each of them.
  private func members(first: Int?, last: Int?, count: Int) -> [Int] {
    (0..<count).filter { place in
      guard let first else { return place >= count - (last ?? 0) }
      return place >= first && place <= last ?? .max
    }
  }

  @Test("Random ranges name the bytes that asking each byte finds")
  func oracle() {
    var random = SplitMix64(seed: seed)
    for _ in 0..<5000 {
      let count = Int.random(in: 0...12, using: &random)
      let first: Int? = random.chance(75) ? Int.random(in: 0...14, using: &random) : nil
      let last: Int? = first == nil || random.chance(70) ? Int.random(in: (first ?? 0)...15, using: &random) : nil
      let header = "bytes=\(first.map(String.init) ?? "")-\(last.map(String.init) ?? "")"
      let members = members(first: first, last: last, count: count)
      let expected = members.first.map { ByteRange.part($0..<$0 + members.count) } ?? .unsatisfiable
      #expect(ByteRange(header, count: count) == expected, "\(header) of \(count), KEYWAY_TEST_SEED=\(seed)")
    }
  }
}
