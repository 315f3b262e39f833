import TestKit
import Testing

@testable import keyway_bench

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
