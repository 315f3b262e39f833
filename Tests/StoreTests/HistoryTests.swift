import Dispatch
import KeyValueModel
import KeyValueObserving
import TestKit
import Testing

@testable import Store

@Suite("The history of a store")
struct HistoryTests {
  private func oldest(_ fixture: StoreFixture) -> (oldest: Revision, count: Int) {
    fixture.store.withPublication { ($0.snapshot.oldestResumable, $0.history.count) }
  }

  @Test("The history keeps as many commits as it may, and the oldest resumable revision is the one before them")
  func count() async throws {
    let fixture = try StoreFixture { $0.historyRevisions = 3 }
    #expect(oldest(fixture) == (0, 0))
    for number in 1...6 as ClosedRange<Revision> {
      await fixture.write(.create(try ref("Account/\(number)"), [:]))
      #expect(oldest(fixture) == (number > 3 ? number - 3 : 0, Int(min(number, 3))))
    }
    let reach = fixture.store.withPublication { publication in
      (0...8 as ClosedRange<Revision>).map { publication.history.commits(after: $0, present: 6)?.map(\.revision) }
    }
    #expect(reach == [nil, nil, nil, [4, 5, 6], [5, 6], [6], [], nil, nil])
  }

  @Test("The history keeps no more bytes than it may, and a commit that is too large for it alone is not kept")
  func bytes() async throws {
    let fixture = try StoreFixture { $0.historyBytes = 10_000 }
    let account = try ref("Account/1")
    await fixture.write(.create(account, [:]))
    for _ in 0..<20 {
      await fixture.write(.set(account, keyPath: "note", .string(String(repeating: "x", count: 1000))))
    }
    let (first, count) = oldest(fixture)
    #expect((1..<10).contains(count))
    #expect(first == fixture.store.snapshot.revision - Revision(count))
    await fixture.write(.set(account, keyPath: "note", .string(String(repeating: "x", count: 20_000))))
    #expect(oldest(fixture) == (fixture.store.snapshot.revision, 0))
    await fixture.write(.create(try ref("Account/2"), [:]))
    #expect(oldest(fixture) == (fixture.store.snapshot.revision - 1, 1), "it goes on with what comes next")
  }

  @Test("A bracket touches its object, though nothing was written")
  func touches() async throws {
    let fixture = try StoreFixture()
    let (one, two) = (try ref("Account/1"), try ref("Account/2"))
    await fixture.write(.create(one, [:]), .create(two, [:]))
    await fixture.write(.willChange(one, key: "note"), .didChange(one, key: "note"))
    func isUntouched(_ object: Reference, _ revision: Revision) -> Bool {
      fixture.store.withPublication { $0.isUntouched([object], after: revision) }
    }
    #expect(!isUntouched(one, 1))
    #expect(isUntouched(two, 1))
    #expect(isUntouched(one, 2))
  }

  @Test("The objects touched after each retained commit are those in a list of all commits", arguments: [1, 2, 7])
  func touchesAtRandom(_ kept: Int) async throws {
    let fixture = try StoreFixture { $0.historyRevisions = kept }
    let accounts = try (0..<12).map { try ref("Account/\($0)") }
    await fixture.write(all: accounts.map { .create($0, [:]) })
    var random = SplitMix64(seed: seed)
    var last = accounts.map { _ in Revision(1) }
    for revision in 2...120 as ClosedRange<Revision> {
      // Some are changed often, others rarely.
      let chosen = Set(
        (0..<Int.random(in: 1...3, using: &random)).map { _ in
          Int.random(in: 0..<(Bool.random(using: &random) ? 3 : 12), using: &random)
        })
      await fixture.write(all: chosen.map { .set(accounts[$0], keyPath: "note", .string("\(revision)")) })
      for place in chosen { last[place] = revision }
      fixture.store.withPublication { publication in
        for after in publication.snapshot.oldestResumable...revision {
          let found = accounts.map { publication.history.isUntouched([$0], after: after) }
          #expect(found == last.map { $0 <= after }, "after \(after) at \(revision), seed \(seed)")
        }
      }
    }
  }

  @Test("Without history only the present can be resumed")
  func none() async throws {
    let fixture = try StoreFixture { $0.historyRevisions = 0 }
    for number in 1...3 { await fixture.write(.create(try ref("Account/\(number)"), [:])) }
    #expect(oldest(fixture) == (3, 0))
    let replays = fixture.store.withPublication { publication in
      (0...4 as ClosedRange<Revision>).map { publication.replay([], after: $0)?.events.count }
    }
    #expect(replays == [nil, nil, nil, 0, nil])
  }
}

@Suite("The state that readers find") struct LatestSnapshotTests {
  private static func snapshot(_ revision: Revision) throws -> Snapshot {
    Snapshot(state: Model(schema: try Schema(yaml: accounts)).state, revision: revision, oldestResumable: 0)
  }

  @Test("It is the last one that was shown, with its revision")
  func last() throws {
    let latest = LatestSnapshot(try Self.snapshot(3))
    #expect(latest.revision == 3 && latest.snapshot.revision == 3)
    latest.show(try Self.snapshot(9))
    #expect(latest.revision == 9 && latest.snapshot.revision == 9)
  }

  @Test("A reader of a state finds its revision or a later one, while other states are published")
  func order() throws {
    let state = try Self.snapshot(0).state
    let snapshots = (0..<2_000).map { Snapshot(state: state, revision: Revision($0), oldestResumable: 0) }
    let latest = LatestSnapshot(snapshots[0])
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      guard thread > 0 else { return snapshots.forEach(latest.show) }
      var seen: Revision = 0
      while seen + 1 < snapshots.count {
        let revision = latest.snapshot.revision
        let found = latest.revision
        guard found >= revision, revision >= seen else {
          Issue.record("\(seen), then \(revision), then \(found)")
          return
        }
        seen = found
      }
    }
  }
}
