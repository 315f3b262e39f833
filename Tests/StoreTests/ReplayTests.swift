import KeyValueModel
import KeyValueObserving
import Store
import Support
import Testing

@Suite("Resuming")
struct ReplayTests {
  private static let schema = """
    entities:
      Account:
        keys:
          balance: {type: integer}
          note: {type: string, notifies: changed}
          secret: {type: integer, notifies: manual}
          twice: {type: integer, computed: secret + secret}
          peer: {toOne: Account, inverse: peer}
          peerBalance: {computed: peer.balance}
    """

  /// Returns operations that create, change, pair, bracket and delete three accounts.
  private static func history() throws -> [[KeyValueModel.Operation]] {
    let (a, b, c) = (try ref("Account/a"), try ref("Account/b"), try ref("Account/c"))
    return [
      [.create(a, ["balance": .integer(1)])], [.create(b, ["balance": .integer(2)])],
      [.set(a, keyPath: "peer", .string("Account/b"))], [.set(b, keyPath: "balance", .integer(3))],
      [.create(c, ["balance": .integer(9), "peer": .string("Account/b")])], [.patch(a, ["note": .string("n")])],
      [
        .willChange(b, key: "balance"), .set(b, keyPath: "balance", .integer(4)), .set(c, keyPath: "note", .null),
        .set(b, keyPath: "balance", .integer(5)), .didChange(b, key: "balance"),
      ],
      // Empty brackets, alone in their transactions.
      [.set(b, keyPath: "secret", .integer(3))], [.willChange(b, key: "secret"), .didChange(b, key: "secret")],
      [.willChange(a, key: "peer"), .didChange(a, key: "peer")],
      [.willChange(c, key: "twice"), .didChange(c, key: "twice")],
      [], [.set(a, keyPath: "peer.balance", .integer(1))], [.put(a, ["peer": .string("Account/c")])],
      [.delete(b)], [.set(c, keyPath: "balance", .integer(7)), .set(c, keyPath: "balance", .integer(8))],
      [.delete(c), .create(c, ["balance": .integer(0), "peer": .string("Account/a")])],
      [.create(b, ["balance": .integer(6), "peer": .string("Account/c")])], [.delete(c)],
    ]
  }

  @Test(
    "From any revision, an observer is told exactly what an unbroken one was told after it",
    arguments: [
      ["balance", "peer", "peer.balance", "peerBalance", "note"], ["balance", "note", "twice"], ["secret"],
      ["peer.twice"],
    ])
  func unbroken(paths: [String]) async throws {
    let fixture = try StoreFixture(Self.schema)
    var revision: Revision = 0
    var watchers: [(observer: UInt64, object: String, since: Revision)] = []
    for operations in try Self.history() {
      // At each revision one more observer is added for each existing object.
      for object in ["Account/a", "Account/b", "Account/c"] {
        guard fixture.store.snapshot.state.record(try ref(object)) != nil else { continue }
        let observer = UInt64(watchers.count)
        fixture.observe(
          try paths.map { try fixture.observation(object, $0, [.old, .new, .prior]) }, observer, cell: object)
        watchers.append((observer, object, revision))
      }
      let outcome = await withCheckedContinuation { continuation in
        let isAccepted = fixture.store.submit(Transaction(operations, writer: "w\(revision)")) { outcome, _, _ in
          continuation.resume(returning: outcome)
        }
        #expect(isAccepted)
      }
      if (try? outcome.get()) != nil { revision += 1 }
    }
    #expect(revision >= 10)
    let events = fixture.recorder.published.flatMap(\.events)
    for watcher in watchers {
      let live = events.filter { $0.observer.rawValue == watcher.observer }.map(describe)
      let observations = try paths.map { try fixture.observation(watcher.object, $0, [.old, .new, .prior]) }
      let replayed = fixture.store.withPublication { publication in
        publication.replay([(watcher.object, observations)], after: watcher.since)?.events.map(describe)
      }
      #expect(replayed == live, "\(watcher)")
    }
  }

  @Test("Cells whose object did not exist at the revision are left out and given back")
  func absent() async throws {
    let fixture = try StoreFixture(Self.schema)
    let (a, b) = (try ref("Account/a"), try ref("Account/b"))
    await fixture.write(.create(a, [:]))
    await fixture.write(.create(b, [:]))
    await fixture.write(.set(a, keyPath: "balance", .integer(1)))
    await fixture.write(.set(b, keyPath: "balance", .integer(2)))
    await fixture.write(.delete(a))
    let cells: [(String?, [Observation])] = [
      ("one", [try fixture.observation("Account/a", "balance")]),
      (nil, [try fixture.observation("Account/b", "balance")]),
    ]
    let replayed = try #require(fixture.store.withPublication { $0.replay(cells, after: 1) })
    #expect(replayed.absent == [nil])
    let expected = ["3 w [\"[one] Account/a.balance null 1\"] []", "5 w [] [\"one Account/a\"]"]
    #expect(replayed.events.map(describe) == expected)
    let later = try #require(fixture.store.withPublication { $0.replay(cells, after: 2) })
    #expect(later.absent.isEmpty)
    #expect(later.events.map(\.revision) == [3, 4, 5])
    let now = try #require(fixture.store.withPublication { $0.replay(cells, after: 5) })
    #expect(now.absent == ["one"])
    #expect(now.events.isEmpty)
    #expect(fixture.store.withPublication { $0.replay(cells, after: 6) == nil })
    #expect(fixture.store.withPublication { $0.observers.count } == 0, "replaying registers nothing")
  }
}
