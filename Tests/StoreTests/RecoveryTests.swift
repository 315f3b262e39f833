import Foundation
import KeyValueModel
import KeyValueObserving
import Store
import Support
import TestKit
import Testing

/// A store that restarts from its journal.
@Suite("A store that starts again")
struct RecoveryTests {
  private static let yaml = """
    entities:
      Account:
        keys:
          balance: { type: integer }
          note: { type: string }
          exact: { type: json }
          peer: { toOne: Account }
          others: { toMany: Account, ordered: true }
          ratio: { type: number }
          twice: { type: integer, computed: "balance * 2" }
    """

  private struct Fixture {
    let journal: any TransactionJournal
    let recorder = Recorder()
    let store: Store

    init(_ journal: any TransactionJournal, _ change: (inout StoreLimits) -> Void = { _ in }) throws {
      var limits = StoreLimits()
      change(&limits)
      self.journal = journal
      store = Store(
        schema: try Schema(yaml: RecoveryTests.yaml), journal: journal, limits: limits, publisher: recorder,
        now: { 1_000 })
      #expect(try store.recover().isEmpty)
    }

    func write(_ operations: KeyValueModel.Operation...) async -> Result<Commit, ModelError> {
      await withCheckedContinuation { continuation in
        _ = store.submit(Transaction(operations, writer: "w")) { outcome, _, _ in
          continuation.resume(returning: outcome)
        }
      }
    }
  }

  private func journal(_ folder: Folder) throws -> SQLiteJournal {
    try SQLiteJournal(directory: folder.path, durability: .synced) {
      JournalIdentity(epoch: "test", schema: Self.yaml)
    }
  }

  /// Returns the contents of a state, object by object.
  private func portrait(_ state: ModelState) -> [String] {
    state.all.map { entry in
      let values = entry.value.values.map(\.json).joined(separator: " ")
      return "\(entry.key) \(entry.value.revision) \(entry.value.createdAt) \(values)"
    }.sorted()
  }

  @Test("State, revisions and history are what they were, whatever was written and however often it starts again")
  func random() async throws {
    var random = SplitMix64(seed: seed)
    let folder = Folder()
    var fixture = try Fixture(try journal(folder)) { $0.historyRevisions = 40 }
    let names = (0..<6).map { "Account/\($0)" }
    for round in 0..<8 {
      for _ in 0..<40 {
        let (one, other) = (names.randomElement(using: &random) ?? "", names.randomElement(using: &random) ?? "")
        let value = Int64.random(in: 0..<100, using: &random)
        let operation: KeyValueModel.Operation =
          switch Int.random(in: 0..<7, using: &random) {
          case 0: .put(try ref(one), ["balance": .integer(value), "peer": .string(other)])
          case 1: .delete(try ref(one))
          case 2: .set(try ref(one), keyPath: "ratio", .number(Double(value)))
          case 3:
            .set(try ref(one), keyPath: "exact", .array([.number(Double(value)), .integer(value), .number(-0.0)]))
          case 4: .insert(try ref(one), keyPath: "others", [.value(.string(other))], at: nil)
          default: .set(try ref(one), keyPath: "balance", .integer(value))
          }
        _ = await fixture.write(operation)
      }
      let before = fixture.store.snapshot
      let events = try history(of: fixture.store, names)
      fixture.store.close()
      fixture = try Fixture(try journal(folder)) { $0.historyRevisions = 40 }
      let after = fixture.store.snapshot
      #expect(after.revision == before.revision, "seed \(seed)")
      #expect(after.oldestResumable == before.oldestResumable, "seed \(seed)")
      #expect(portrait(after.state) == portrait(before.state), "seed \(seed), round \(round)")
      #expect(try history(of: fixture.store, names) == events, "seed \(seed), round \(round)")
    }
    fixture.store.close()
  }

  /// Returns the events of an observer that resumes, for each revision that can be resumed from.
  private func history(of store: Store, _ names: [String]) throws -> [String] {
    let entity = try #require(store.schema.entities.first)
    let paths = try ["balance", "twice", "peer.balance", "others", "exact"].map {
      try store.schema.resolve($0, from: entity)
    }
    let cells = try names.map { name in
      let reference = try ref(name)
      return (
        name: String?(name),
        observations: paths.map { Observation(object: reference, keyPath: $0, options: [.old, .new, .prior]) }
      )
    }
    let snapshot = store.snapshot
    var lines: [String] = []
    for revision in snapshot.oldestResumable...snapshot.revision {
      let replay = store.withPublication { publication in
        publication.replay(cells, after: revision).map { ($0.events.map(describe), $0.absent) }
      }
      let (events, absent) = try #require(replay)
      lines.append("\(revision) \(absent.compactMap(\.self)): \(events)")
    }
    return lines
  }

  @Test("A store starts from a snapshot that is old enough for the whole history, and forgets what came before")
  func snapshots() async throws {
    let folder = Folder()
    let limits: (inout StoreLimits) -> Void = { limits in
      limits.historyRevisions = 30
      limits.snapshotRevisions = 100
    }
    var fixture = try Fixture(try journal(folder), limits)
    _ = await fixture.write(.create(try ref("Account/1"), [:]))
    for value in 1...1000 {
      _ = await fixture.write(.set(try ref("Account/1"), keyPath: "balance", .integer(Int64(value))))
    }
    _ = await Deadline().comes { fixture.journal.bounds.base > 0 }
    let bounds = fixture.journal.bounds
    #expect(bounds.base > 0 && bounds.base <= 1001 - 30, "\(bounds)")
    #expect(fixture.store.snapshot.oldestResumable == 1001 - 30)
    fixture.store.close()
    fixture = try Fixture(try journal(folder), limits)
    #expect(fixture.store.snapshot.revision == 1001)
    #expect(fixture.store.snapshot.oldestResumable == 1001 - 30)
    #expect(fixture.store.snapshot.state.record(try ref("Account/1"))?.values[0] == .integer(1000))
    fixture.store.close()
  }

  @Test("A damaged snapshot is told of and done without")
  func damagedSnapshot() async throws {
    let folder = Folder()
    let journal = try journal(folder)
    let fixture = try Fixture(journal) { $0.historyRevisions = 1 }
    for id in 1...50 { _ = await fixture.write(.create(try ref("Account/\(id)"), ["balance": .integer(Int64(id))])) }
    var encoder = StateEncoder(fixture.store.snapshot.state)
    try journal.writeSnapshot(at: 50, milliseconds: 0) { encoder.nextBlock() }
    for id in 51...60 { _ = await fixture.write(.create(try ref("Account/\(id)"), ["balance": .integer(Int64(id))])) }
    let expected = portrait(fixture.store.snapshot.state)
    fixture.store.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/snapshots")
    let path = "\(folder.path)/snapshots/\(try #require(names.first))"
    var bytes = try Data(contentsOf: URL(filePath: path))
    bytes[bytes.count - 40] ^= 1
    try bytes.write(to: URL(filePath: path))
    let reopened = try self.journal(folder)
    var limits = StoreLimits()
    limits.historyRevisions = 1
    let store = Store(
      schema: try Schema(yaml: Self.yaml), journal: reopened, limits: limits, publisher: Recorder(), now: { 0 })
    let remarks = try store.recover()
    #expect(remarks.count == 1 && remarks.allSatisfy { $0.contains("snapshot of revision 50") }, "\(remarks)")
    #expect(portrait(store.snapshot.state) == expected)
    store.close()
  }
}
