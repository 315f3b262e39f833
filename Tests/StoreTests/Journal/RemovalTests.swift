import TestKit
import Testing

@testable import Store

@Suite("Old records are taken away a little at a time")
struct RemovalTests {
  @Test("a removal takes as many records as it may, and no more bytes, but for one record")
  func pieces() throws {
    let directory = try TemporaryDirectory()
    let database = try JournalDatabase("\(directory.path)/journal.db", .synced)
    defer { database.close() }
    var random = SplitMix64(seed: seed)
    let sizes = (0..<300).map { _ in Int.random(in: 1...(random.chance(10) ? 40_000 : 200), using: &random) }
    try database.append(
      sizes.enumerated().map { index, size in
        (record(UInt64(index + 1), String(repeating: "x", count: size)), JournalDigest(value: UInt64(index)))
      })
    let head = JournalDatabase.Head(epoch: "e", schema: "", base: 0, baseDigest: .start)
    let (base, limit, bytes) = (250, 20, 10_000)
    var first = 0
    var goesOn = true
    while goesOn {
      var end = first
      while end < base, end - first < limit, end == first || sizes[first...end].reduce(0, +) <= bytes { end += 1 }
      goesOn = try database.remove(upTo: UInt64(base), limit: limit, bytes: bytes)
      #expect(goesOn == (end < base), "seed \(seed)")
      #expect(try database.digest(at: UInt64(end), head) == nil, "seed \(seed)")
      #expect(try database.digest(at: UInt64(end + 1), head)?.value == UInt64(end), "seed \(seed)")
      first = end
    }
    #expect(first == base)
    #expect(try !database.remove(upTo: UInt64(base), limit: limit, bytes: bytes))
    #expect(try database.lastRevision() == 300)
  }
}
