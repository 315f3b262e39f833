import KeyValueModel
import KeyValueObserving
import Store
import TestKit
import Testing

@Suite("Resuming while others write")
struct SharedReplayTests {
  private static let schema = """
    entities:
      Account:
        keys:
          balance: {type: integer}
          peer: {toOne: Account}
          peerBalance: {computed: peer.balance}
    """

  /// Creates, changes, pairs or deletes accounts at random.
  private func write(_ fixture: StoreFixture, _ random: inout SplitMix64) async throws {
    let account = try ref("Account/\(Int.random(in: 0..<4, using: &random))")
    let other = "Account/\(Int.random(in: 0..<4, using: &random))"
    switch Int.random(in: 0..<6, using: &random) {
    case 0: await fixture.write(.delete(account))
    case 1, 2: await fixture.write(.put(account, ["balance": .integer(Int64.random(in: 0..<9, using: &random))]))
    case 3: await fixture.write(.set(account, keyPath: "peer", .string(other)))
    default:
      let balance = Value.integer(Int64.random(in: 0..<9, using: &random))
      await fixture.write(.set(account, keyPath: "balance", balance), .set(account, keyPath: "balance", .integer(7)))
    }
  }

  @Test("With commits in any portions, shared by any streams, the events are the same")
  func pieces() async throws {
    var random = SplitMix64(seed: seed)
    let fixture = try StoreFixture(Self.schema)
    for number in 0..<4 { await fixture.write(.create(try ref("Account/\(number)"), [:])) }
    var bases: [PublishedHistory] = []
    for _ in 0..<150 {
      bases.append(fixture.store.withPublication(\.publishedHistory))
      try await write(fixture, &random)
    }
    let last = fixture.store.withPublication(\.publishedHistory)
    let paths = ["balance", "peer", "peer.balance", "peerBalance"]
    let cells = try (0..<4).map { number in
      (Optional("\(number)"), try paths.map { try fixture.observation("Account/\(number)", $0, [.old, .new, .prior]) })
    }
    for _ in 0..<60 {
      let first = try #require(bases.randomElement(using: &random))
      let after = Revision.random(in: 0...first.snapshot.revision, using: &random)
      let whole = try #require(fixture.store.withPublication { $0.replay(cells, after: after) })
      var events: [ObserverEvent] = []
      let missed = try #require(fixture.store.missed(after: after, first))
      var replay = Replay(cells, missed, limits: StoreLimits()) { events.append($0) }
      while replay.revision < last.snapshot.revision {
        let next = bases.filter { $0.snapshot.revision > replay.revision }.randomElement(using: &random) ?? last
        let commits = try #require(next.commits(after: replay.revision))
        replay.bringUp(through: commits, to: next.snapshot.state, limits: StoreLimits()) { events.append($0) }
        #expect(replay.revision == next.snapshot.revision)
      }
      #expect(events.map(describe) == whole.events.map(describe), "seed \(seed), after \(after)")
      #expect(replay.absent == whole.absent, "seed \(seed), after \(after)")
    }
  }

  @Test("Streams that resume from a revision at about the same time share its replay, as long as it may be cached")
  func sharing() async throws {
    let fixture = try StoreFixture { $0.resumedRevisions = 100 }
    let account = try ref("Account/1")
    await fixture.write(.create(account, [:]))
    for number in 0..<20 as Range<Int64> { await fixture.write(.set(account, keyPath: "balance", .integer(number))) }
    let publishedHistory = fixture.store.withPublication(\.publishedHistory)
    let missed = try #require(fixture.store.missed(after: 5, publishedHistory))
    #expect(missed.commits.map(\.revision) == Array(6...21))
    await fixture.write(.set(account, keyPath: "balance", .integer(-1)))
    #expect(fixture.store.missed(after: 5, fixture.store.withPublication(\.publishedHistory)) === missed)
    #expect(fixture.store.missed(after: 6, publishedHistory) !== missed)
    for revision in 7...20 as ClosedRange<Revision> { _ = fixture.store.missed(after: revision, publishedHistory) }
    #expect(fixture.store.missed(after: 5, publishedHistory) !== missed, "others have taken its place")
    for number in 0..<100 as Range<Int64> { await fixture.write(.set(account, keyPath: "balance", .integer(number))) }
    let later = try #require(fixture.store.missed(after: 20, fixture.store.withPublication(\.publishedHistory)))
    #expect(later.snapshot.revision == fixture.store.snapshot.revision, "it was too far behind")
    #expect(fixture.store.missed(after: 200, publishedHistory) == nil)
  }

  @Test("A publishedHistory shows the commits of its moment, whatever is written and forgotten after it")
  func publishedHistory() async throws {
    let fixture = try StoreFixture { $0.historyRevisions = 150 }
    let account = try ref("Account/1")
    await fixture.write(.create(account, [:]))
    var bases: [PublishedHistory] = []
    for number in 0..<400 {
      bases.append(fixture.store.withPublication(\.publishedHistory))
      await fixture.write(.set(account, keyPath: "balance", .integer(Int64(number))))
    }
    for publishedHistory in bases {
      let present = publishedHistory.snapshot.revision
      let oldest = present > 150 ? present - 150 : 0
      #expect(publishedHistory.snapshot.oldestResumable == oldest)
      #expect(publishedHistory.commits(after: oldest)?.map(\.revision) == Array(oldest + 1..<present + 1))
      #expect(publishedHistory.commits(after: present)?.isEmpty == true)
      #expect(publishedHistory.commits(after: present + 1) == nil)
      if oldest > 0 { #expect(publishedHistory.commits(after: oldest - 1) == nil) }
      let middle = (oldest + present) / 2
      #expect(publishedHistory.commits(after: middle)?.map(\.revision) == Array(middle + 1..<present + 1))
    }
  }

  @Test("A query that is prepared for one, given back and brought up for the next is what it is when evaluated anew")
  func queries() async throws {
    var random = SplitMix64(seed: seed)
    let fixture = try StoreFixture(Self.schema)
    var words = Query.Words(entity: "Account")
    words.filter = "balance > 3"
    words.sort = "-balance"
    words.limit = 2
    let query = try Query(words, in: fixture.store.schema)
    var shared: [Query: PreparedQuery] = [:]
    try fixture.store.prepare([query], after: 0, fixture.store.withPublication(\.publishedHistory), &shared)
    for _ in 0..<100 {
      for _ in 0..<Int.random(in: 0..<4, using: &random) { try await write(fixture, &random) }
      let publishedHistory = fixture.store.withPublication(\.publishedHistory)
      fixture.store.cacheResumedQueries(shared, after: 0)
      shared = [:]
      try fixture.store.prepare([query], after: 0, publishedHistory, &shared)
      let (known, missed) = (try #require(shared[query]), try #require(MissedCommits(after: 0, publishedHistory)))
      #expect(known.revision == publishedHistory.snapshot.revision)
      let anew = try #require(
        try fixture.store.withPublication { publication throws(ModelError) in
          try publication.replay(query, nil, after: 0)
        })
      #expect(missed.commits.count == Int(known.revision))
      #expect(known.contents.map(\.revision) == anew.contents.map(\.revision), "seed \(seed)")
      #expect(known.contents.map(\.changes.count) == anew.contents.map(\.changes.count), "seed \(seed)")
      #expect(known.result.window.map(\.reference) == anew.result.window.map(\.reference), "seed \(seed)")
      #expect(known.rowCount == anew.rowCount, "seed \(seed)")
    }
  }
}
