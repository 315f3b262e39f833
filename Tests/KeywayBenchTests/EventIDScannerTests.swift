import TestKit
import Testing

@testable import keyway_bench

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
