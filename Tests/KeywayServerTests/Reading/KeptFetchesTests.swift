import Glibc
import KeyValueModel
import Support
import TestKit
import Testing

@testable import HTTPServer
@testable import KeywayServer
@testable import Store

@Suite("Fetches that are kept, and who gives way")
struct KeptFetchesTests {
  private struct World {
    let ledger: MemoryLedger
    private static let target = Target(segments: [], parameters: [])
    let pages: PageStore
    let state: ModelState

    init(ledger limit: Int = .max, client: Int = .max, _ configure: (inout PageStore.Limits) -> Void) throws {
      var limits = PageStore.Limits()
      configure(&limits)
      ledger = MemoryLedger(limit: limit, clientLimit: client)
      let words = Words()
      pages = PageStore(limits: limits, ledger: ledger, now: { 0 }, random: { words.next() })
      state = Model(schema: try Schema(yaml: Fixture.schema)).state
    }

    /// Stores a fetch of so many rows, of a state before which so many bytes were written. Returns its page, or nil if
    /// it is refused.
    func keep(_ client: Int, rows: Int = 1, written: Int = 0) throws -> String? {
      let reference = try #require(Reference("Note/1"))
      let fetch = PageStore.Fetch(
        snapshot: Snapshot(state: state, revision: 1, oldestResumable: 1, writtenBytes: written),
        rows: PageStore.Rows(references: Array(repeating: reference, count: rows)), target: Self.target,
        owner: PageStore.Owner(.anybody(nil)))
      return try? pages.keep(fetch, for: KeptFetchesTests.client(client))
    }

    func has(_ word: String?) -> Bool {
      word.map { (try? pages.fetch(page: "\($0).0", Self.target, owner: PageStore.Owner(.anybody(nil)))) != nil }
        ?? false
    }
  }

  private final class Words: Sendable {
    private let last = Locked<UInt64>(0)
    func next() -> UInt64 {
      last.withLock {
        $0 += 1
        return $0
      }
    }
  }

  private static func client(_ number: Int) -> ClientAddress {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(number + 1).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { ClientAddress($0) }
    }
  }

  @Test("At the limit, the client that has the most makes room, and only for one that has less")
  func fairness() throws {
    let world = try World { limits in
      limits.fetches = 6
      limits.clientFetches = 6
    }
    let large = try (0..<5).map { _ in try world.keep(0) }
    let small = try world.keep(1)
    let more = try world.keep(1)
    #expect(world.has(small) && world.has(more))
    #expect(!world.has(large[0]) && world.has(large[1]), "the one with the most gave its oldest")
    let third = try world.keep(2)
    #expect(world.has(third) && world.has(small) && world.has(more) && !world.has(large[1]))
    // Client 1 would have as many as client 0: its own fetch is dropped.
    let last = try world.keep(1)
    #expect(world.has(last) && !world.has(small) && large[2...].allSatisfy(world.has))
  }

  @Test("A client that has none is refused rather than given what another has a right to")
  func refused() throws {
    let world = try World { $0.fetches = 2 }
    let kept = try [world.keep(0), world.keep(1)]
    #expect(try world.keep(2) == nil)
    #expect(kept.allSatisfy(world.has))
  }

  @Test("Rows count in bytes, for the ledger too, and are given back")
  func bytes() throws {
    let row = MemoryLayout<Reference>.stride
    let world = try World(client: 100 * row) { $0.bytes = 150 * row }
    let first = try world.keep(0, rows: 60)
    #expect(world.ledger.bytes(for: .pages) == world.pages.counts.bytes)
    let second = try world.keep(0, rows: 60)
    #expect(!world.has(first) && world.has(second), "its own oldest gave way")
    #expect(try world.keep(0, rows: 120) == nil)
    #expect(world.ledger.bytes(of: Self.client(0)) == world.pages.counts.bytes)
  }

  @Test("Later writes count for the stored states, each part once, and the oldest state is dropped first")
  func retained() throws {
    let world = try World { $0.bytes = 1_000_000 }
    let old = try world.keep(0, written: 0)
    let middle = try world.keep(1, written: 400_000)
    let same = try world.keep(1, written: 400_000)
    let own = world.pages.counts.bytes
    world.pages.sweep(written: 500_000)
    #expect(world.pages.counts.bytes == own + 500_000)
    #expect(world.ledger.bytes(for: .pages) == own + 500_000)
    world.pages.sweep(written: 1_100_000)
    #expect(!world.has(old) && world.has(middle) && world.has(same))
    #expect(world.pages.counts.bytes == world.ledger.bytes(for: .pages))
    world.pages.sweep(written: 9_000_000)
    #expect(world.pages.counts.fetches == 0 && world.ledger.total == 0)
  }

  @Test("After any fetches the bounds and the sums hold, and no client displaces one that has less")
  func random() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<20 {
      let limit = Int.random(in: 3...12, using: &random)
      let world = try World(client: 20_000) { limits in
        limits.fetches = limit
        limits.clientFetches = 5
        limits.bytes = 40_000
      }
      var written = 0
      for _ in 0..<200 {
        written += Int.random(in: 0...300, using: &random)
        _ = try world.keep(
          Int.random(in: 0..<4, using: &random), rows: Int.random(in: 0...200, using: &random), written: written)
        if Int.random(in: 0..<5, using: &random) == 0 { world.pages.sweep(written: written) }
        let counts = world.pages.counts
        #expect(counts.fetches <= limit && counts.bytes <= 40_000, "seed \(seed)")
        #expect(counts.bytes == world.ledger.bytes(for: .pages), "seed \(seed)")
      }
    }
  }
}
