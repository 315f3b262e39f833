import Foundation
import KeyValueModel
import Support
import TestKit
import Testing

@testable import Store

@Suite("The memory that the objects of a store may take")
struct GrowthLimitTests {
  private static func write(
    _ store: Store, _ operations: [KeyValueModel.Operation], of client: Int = 1
  ) async -> ModelError.Code? {
    await withCheckedContinuation { continuation in
      _ = store.submit(Transaction(operations), of: client) { outcome, _, _ in
        if case .failure(let error) = outcome {
          continuation.resume(returning: error.code)
        } else {
          continuation.resume(returning: nil)
        }
      }
    }
  }

  private static func text(_ count: Int) -> JSONObject { ["note": .string(String(repeating: "x", count: count))] }

  @Test("A write that would exceed the limit of all objects, or of a client, is refused, and changes nothing")
  func random() async throws {
    let (limit, share) = (100_000, 40_000)
    let fixture = try StoreFixture {
      $0.transaction.memoryBytes = limit
      $0.growthPerClient = share
    }
    var random = SplitMix64(seed: seed)
    /// The oracle of this test: the growth of each client, and an unlimited model for the size that each write would
    /// reach.
    var growths: [Int: Int] = [:]
    var oracle = Model(schema: fixture.store.schema)
    var refusals: [ModelError.Code?: Int] = [:]
    for step in 0..<1_500 {
      let client = Int.random(in: 1...4, using: &random)
      let object = try ref("Account/\(Int.random(in: 0..<30, using: &random))")
      let exists = oracle.state.record(object) != nil
      let text = Self.text(.random(in: 0..<12_000, using: &random))
      let operation: KeyValueModel.Operation = exists && random.chance(30) ? .delete(object) : .put(object, text)
      var trial = oracle
      _ = try trial.commit(Transaction([operation]))
      let growth = trial.state.memoryBytes - oracle.state.memoryBytes
      let exceedsLimit = growth > 0 && (trial.state.memoryBytes > limit || growths[client, default: 0] + growth > share)
      let code = await Self.write(fixture.store, [operation], of: client)
      #expect(code == (exceedsLimit ? .overloaded : nil), "step \(step) of seed \(seed)")
      refusals[code, default: 0] += 1
      if !exceedsLimit {
        oracle = trial
        growths[client] = max(0, growths[client, default: 0] + growth)
      }
      #expect(fixture.store.snapshot.state.memoryBytes == oracle.state.memoryBytes, "step \(step) of seed \(seed)")
    }
    #expect(refusals[.overloaded, default: 0] > 100 && refusals[nil, default: 0] > 100, "seed \(seed)")
    let counted = fixture.store.growthRefusals.count(by: .objects) + fixture.store.growthRefusals.count(by: .client)
    #expect(counted == refusals[.overloaded])
  }

  @Test("A store that is over its limit starts, with the same count from its journal and from a snapshot, and shrinks")
  func startsOver() async throws {
    let folder = Folder()
    func open(_ change: (inout StoreLimits) -> Void) throws -> Store {
      let journal = try SQLiteJournal(directory: folder.path, durability: .synced) {
        JournalIdentity(epoch: "test", schema: accounts)
      }
      var limits = StoreLimits()
      change(&limits)
      let store = Store(
        schema: try Schema(yaml: accounts), journal: journal, limits: limits, publisher: Recorder(), now: { 1_000 })
      #expect(try store.recover().isEmpty)
      return store
    }
    var store = try open {
      $0.snapshotRevisions = 10
      $0.historyRevisions = 1
    }
    for number in 0..<40 {
      #expect(await Self.write(store, [.put(try ref("Account/\(number)"), Self.text(5_000))]) == nil)
    }
    let bytes = store.snapshot.state.memoryBytes
    #expect(await Deadline().comes { store.snapshotRevision > 0 })
    store.close()
    store = try open { $0.transaction.memoryBytes = bytes / 2 }
    #expect(store.snapshot.state.memoryBytes == bytes)
    #expect(await Self.write(store, [.put(try ref("Account/new"), [:])]) == .overloaded)
    #expect(await Self.write(store, [.put(try ref("Account/1"), Self.text(4_000))]) == nil)
    for number in 0..<30 { #expect(await Self.write(store, [.delete(try ref("Account/\(number)"))]) == nil) }
    #expect(await Self.write(store, [.put(try ref("Account/new"), [:])]) == nil)
    store.close()
  }

  @Test("Commits of another node are taken over however much they add")
  func takesRecords() async throws {
    let source = try StoreFixture()
    for number in 0..<10 { await source.write(.put(try ref("Account/\(number)"), Self.text(5_000))) }
    let records = try source.store.journal.records(after: 0, limit: .max, bytes: .max, waiting: .zero)
    let fixture = try StoreFixture { $0.transaction.memoryBytes = 10_000 }
    try fixture.store.take(records)
    #expect(fixture.store.snapshot.state.memoryBytes == source.store.snapshot.state.memoryBytes)
    #expect(await Self.write(fixture.store, [.put(try ref("Account/new"), [:])]) == .overloaded)
  }

  @Test("The growth of clients in a batch is undone if the batch fails")
  func undone() {
    var growth = ClientGrowth(limit: 100, refusals: GrowthRefusals())
    growth.note(60, of: 1)
    growth.commitBatch()
    growth.note(30, of: 1)
    growth.note(-20, of: 1)
    growth.note(50, of: 2)
    #expect((growth.bytes(of: 1), growth.bytes(of: 2)) == (70, 50))
    growth.undo()
    #expect((growth.bytes(of: 1), growth.bytes(of: 2)) == (60, 0))
    #expect(growth.bounding(TransactionLimits(), for: 1, at: 1_000).memoryBytes == 1_040)
  }
}
