import Cluster
import Foundation
import KeyValueModel
import Store
import Support
import TestKit
import Testing

/// Stores of several nodes over one journal.
@Suite("Stores that share a journal")
struct SharedStoreTests {
  /// A node: a store, with a recorder of its events.
  private struct Node {
    let recorder = Recorder()
    let store: Store

    init(
      _ database: String, _ name: String, restore: @escaping @Sendable ([StoredAttachment]) -> Void = { _ in },
      limits change: (inout StoreLimits) -> Void = { _ in }
    ) throws {
      var options = PostgresJournal.Options()
      options.node = name
      let journal = try PostgresJournal(database, options: options) {
        JournalIdentity(epoch: "test", schema: accounts)
      }
      var limits = StoreLimits()
      change(&limits)
      store = Store(
        schema: try Schema(yaml: accounts), journal: journal, limits: limits, publisher: recorder, now: { 1_000 })
      _ = try store.recover(schemaText: accounts, restore: restore)
    }

    @discardableResult
    func write(
      _ operations: KeyValueModel.Operation..., preconditions: [Precondition] = [], attachment: [UInt8]? = nil
    ) async -> Result<Commit, ModelError> {
      var kept: (@Sendable (Commit) -> [UInt8])?
      if let attachment { kept = { _ in attachment } }
      return await withCheckedContinuation { continuation in
        let transaction = Transaction(operations, preconditions: preconditions, writer: "w")
        _ = store.submit(transaction, attachment: kept) { outcome, _, _ in
          continuation.resume(returning: outcome)
        }
      }
    }

    /// Waits until the store has reached a revision and has notified its observers, which happens after the revision
    /// can be read.
    func reaches(_ revision: Revision) async {
      #expect(await Deadline().comes { (recorder.published.last?.upTo ?? 0) >= revision })
      #expect(store.revision >= revision)
    }

    var portrait: [String] {
      store.snapshot.state.all.map { entry in
        "\(entry.key) \(entry.value.revision) \(entry.value.values.map(\.json).joined(separator: " "))"
      }.sorted()
    }
  }

  /// The journal of a node without a connection: an append waits until it is released, and fails.
  private final class UnreachableJournal: ForwardingSharedJournal {
    let sharedBase: any SharedJournal
    let appends = Locked(0)
    let isLetGo = Locked(false)
    var silence: Duration { .seconds(60) }

    init(_ base: any SharedJournal) { sharedBase = base }

    func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
      appends.withLock { $0 += 1 }
      while !isLetGo.withLock({ $0 }) { usleep(1_000) }
      throw .untrusted("it is not known whether it was written")
    }
  }

  /// A write that is not carried out if another node already has.
  private final class RepeatedWrite: StoreWrite {
    let transaction: Transaction
    let client = Store.ownClient
    let byteCount = 0
    let calls = Locked<[String]>([])
    private let isKnown: Locked<Bool>

    init(_ transaction: Transaction, _ isKnown: Locked<Bool>) {
      (self.transaction, self.isKnown) = (transaction, isKnown)
    }

    func takePrecedent() -> Bool {
      guard isKnown.withLock({ $0 }) else { return false }
      calls.withLock { $0.append("replay") }
      return true
    }

    func conclude(_ outcome: Result<Commit, ModelError>, _ state: borrowing ModelState, _ revision: Revision) {
      calls.withLock { $0.append("conclude") }
    }

    func finish(_ failure: StoreUnavailable?) { calls.withLock { $0.append("finish") } }
  }

  @Test("Writes that waited for a journal out of reach are refused with the one that found it so, and it tries once")
  func outOfReach() async throws {
    let identity = JournalIdentity(epoch: "test", schema: accounts)
    let journal = UnreachableJournal(try PostgresJournal(database) { identity })
    let store = Store(
      schema: try Schema(yaml: accounts), journal: journal, limits: StoreLimits(), publisher: Recorder(),
      now: { 1_000 })
    _ = try store.recover(schemaText: accounts) { _ in }
    let object = try ref("Account/1")
    let reasons = Locked<[String]>([])
    for number in 0..<3 {
      _ = store.submit(Transaction([.put(object, [:])])) { _, _, failure in
        reasons.withLock { $0.append(failure?.reason ?? "") }
      }
      // The other writes come while the first is being appended.
      while number == 0, journal.appends.withLock({ $0 }) == 0 { await Task.yield() }
    }
    journal.isLetGo.withLock { $0 = true }
    while reasons.withLock({ $0.count }) < 3 { await Task.yield() }
    #expect(journal.appends.withLock { $0 } == 1)
    let late = reasons.withLock { Array($0.dropFirst()) }
    #expect(late == Array(repeating: "the journal is out of reach; nothing was changed", count: 2))
    #expect(store.revision == 0)
  }

  private let database: String

  init() throws { database = try PostgresServer.shared().makeDatabase() }

  /// Returns a name for the outcome of a write.
  private func name(_ outcome: Result<Commit, ModelError>) -> String {
    switch outcome {
    case .success(let commit): "\(commit.revision)"
    case .failure(let error): "\(error.code)"
    }
  }

  @Test("The calls for each batch of another node are the same each time")
  func calling() async throws {
    let depths = Locked<[Int]>([])
    let one = try Node(database, "one")
    let other = try Node(
      database, "other", restore: { _ in depths.withLock { $0.append(Thread.callStackReturnAddresses.count) } })
    other.store.follow()
    let object = try ref("Account/1")
    for number in 1...20 {
      await one.write(.put(object, ["balance": .integer(Int64(number))]), attachment: [UInt8(number)])
      await other.reaches(Revision(number))
    }
    let found = depths.withLock { $0 }
    #expect(found.count == 20 && (found.max() ?? 0) - (found.min() ?? 0) < 10, "\(found)")
  }

  @Test("A store that has not heard of the others' commits judges every write by them all the same")
  func judging() async throws {
    // Neither node follows the other: it reads on only after an append that came too late, or for a refusal that needs
    // the newest state.
    let (one, other) = (try Node(database, "one"), try Node(database, "other"))
    let object = try ref("Account/1")
    #expect(name(await one.write(.put(object, ["balance": .integer(1)]))) == "1")
    #expect(other.store.revision == 0)
    #expect(name(await other.write(.set(object, keyPath: "balance", .integer(2)))) == "2")
    #expect(other.store.overtakenBatches == 1)
    #expect(
      name(await one.write(.delete(object), preconditions: [.unchangedObject(object, since: 1)])) == "staleRevision")
    #expect(one.store.revision == 2)
    #expect(name(await one.write(.delete(object))) == "3")
    #expect(name(await other.write(.set(object, keyPath: "balance", .integer(2)))) == "unknownObject")
    #expect(other.store.revision == 3)
    #expect(name(await one.write(.create(object, ["balance": .integer(4)]))) == "4")
    #expect(name(await other.write(.create(object, [:]))) == "alreadyExists")
  }

  @Test("Of writes that demand the same state, at all nodes at once, one succeeds; all nodes come to the same")
  func racing() async throws {
    let nodes = try ["a", "b", "c"].map { try Node(database, $0) }
    for node in nodes { node.store.follow() }
    let object = try ref("Account/1")
    await nodes[0].write(.put(object, ["balance": .integer(0)]))
    let seen = Locked<[Revision: Int]>([:])
    await withTaskGroup(of: Int.self) { group in
      for index in 0..<6 {
        group.addTask {
          let node = nodes[index % 3]
          var successes = 0
          while successes < 20 {
            let snapshot = node.store.snapshot
            guard let record = snapshot.state.record(object), case .integer(let balance)? = record.values.first else {
              continue
            }
            let outcome = await node.write(
              .set(object, keyPath: "balance", .integer(balance + 1)),
              preconditions: [.unchangedObject(object, since: snapshot.revision)])
            guard case .success(let commit) = outcome else { continue }
            seen.withLock { $0[commit.revision, default: 0] += 1 }
            successes += 1
          }
          return successes
        }
      }
      await group.waitForAll()
    }
    #expect(seen.withLock { $0.count } == 120 && seen.withLock { $0.values.allSatisfy { $0 == 1 } })
    for node in nodes {
      await node.reaches(121)
      #expect(node.portrait == nodes[0].portrait)
      #expect(node.store.snapshot.state.record(object)?.values.first == .integer(120))
      #expect(node.recorder.published.last?.upTo == 121)
    }
  }

  @Test("Random writes at random nodes leave the same objects and history everywhere, and after a start")
  func randomly() async throws {
    var random = SplitMix64(seed: seed)
    let restored = Locked<[Int: [String]]>([:])
    let nodes = try ["a", "b", "c"].enumerated().map { index, name in
      try Node(database, name) { attachments in
        restored.withLock { $0[index, default: []] += attachments.map { String(decoding: $0.bytes, as: UTF8.self) } }
      } limits: { limits in
        (limits.historyRevisions, limits.snapshotRevisions) = (40, 50)
      }
    }
    for node in nodes { node.store.follow() }
    var own: [Int: Set<String>] = [:]
    for number in 0..<400 {
      let index = Int.random(in: 0..<3, using: &random)
      let object = try ref("Account/\(Int.random(in: 0..<5, using: &random))")
      let value = Int64.random(in: 0..<9, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: await nodes[index].write(.delete(object))
      case 1:
        await nodes[index].write(.put(object, ["balance": .integer(value)]), attachment: Array("\(number)".utf8))
        own[index, default: []].insert("\(number)")
      default: await nodes[index].write(.set(object, keyPath: "balance", .integer(value)))
      }
    }
    let last = nodes.map(\.store.revision).max() ?? 0
    for (index, node) in nodes.enumerated() {
      await node.reaches(last)
      #expect(node.portrait == nodes[0].portrait, "seed \(seed)")
      #expect(node.store.snapshot.oldestResumable == last - 40, "seed \(seed)")
      let others = own.filter { $0.key != index }.values.reduce(into: Set()) { $0.formUnion($1) }
      #expect(Set(restored.withLock { $0[index] ?? [] }) == others, "seed \(seed)")
    }
    let started = try Node(database, "d", limits: { limits in limits.historyRevisions = 40 })
    #expect(started.portrait == nodes[0].portrait, "seed \(seed)")
    #expect(started.store.snapshot.oldestResumable == last - 40, "seed \(seed)")
    // Some node has written a snapshot, and none has removed anything that a start needs.
    #expect(try !started.store.journal.snapshots().isEmpty)
  }

  @Test("A write that another node has carried out already is not carried out again")
  func precedents() async throws {
    let known = Locked(false)
    let one = try Node(database, "one")
    // It takes writes, and does not follow yet: it reads on only after an append that came too late.
    let other = try Node(
      database, "other",
      restore: { found in if found.contains(where: { $0.bytes == [7] }) { known.withLock { $0 = true } } })
    let object = try ref("Account/1")
    await one.write(.put(object, ["balance": .integer(1)]), attachment: [7])
    let write = RepeatedWrite(Transaction([.put(object, ["balance": .integer(1)])]), known)
    #expect(other.store.submit(write))
    // Its response comes after that of the write before.
    await other.write(.put(try ref("Account/2"), [:]))
    #expect(write.calls.withLock { $0 } == ["conclude", "replay", "finish"])
    #expect(other.store.revision == 2)
  }

  @Test("A lease of one node's stream is not ended by another; what is due is ended once")
  func leases() async throws {
    let clock = Locked<UInt64>(0)
    let nodes = try ["one", "other"].map { name in
      let numbers = StreamNumbers(node: name, random: 0)
      var options = PostgresJournal.Options()
      options.node = name
      let journal = try PostgresJournal(database, options: options) {
        JournalIdentity(epoch: "test", schema: accounts)
      }
      let store = Store(
        schema: try Schema(yaml: accounts), journal: journal, limits: StoreLimits(), publisher: Recorder(),
        streams: numbers, now: { 1_000 }, elapsed: { clock.withLock { $0 } })
      _ = try store.recover(schemaText: accounts)
      store.follow()
      return (store: store, stream: numbers.first + 1)
    }
    let (bound, timed) = (try ref("Account/1"), try ref("Account/2"))
    await withCheckedContinuation { continuation in
      _ = nodes[0].store.submit(
        Transaction([
          .put(bound, [:]), .lifetime(bound, .stream(nodes[0].stream)), .put(timed, [:]),
          .lifetime(timed, .seconds(60)),
        ])
      ) { _, _, _ in continuation.resume() }
    }
    #expect(await Deadline().comes { nodes[1].store.revision >= 1 })
    nodes[1].store.endLeases { _ in false }
    clock.withLock { $0 = 61_000 }
    // The other node leaves the leases that are due to the node that appended last.
    nodes[1].store.endLeases { _ in false }
    nodes[0].store.endLeases { $0 == nodes[0].stream }
    for node in nodes {
      #expect(await Deadline().comes { node.store.revision >= 2 })
      #expect(node.store.snapshot.state.record(bound) != nil)
      #expect(node.store.snapshot.state.record(timed) == nil)
    }
    nodes[1].store.endLeases { _ in false }
    nodes[0].store.endLeases { _ in false }
    for node in nodes {
      #expect(await Deadline().comes { node.store.revision >= 3 })
      #expect(node.store.snapshot.state.record(bound) == nil)
    }
    let others = StreamNumbers(node: "other", random: 77)
    #expect(StreamNumbers(node: "other", random: 5).isOwn(others.first + 9) && others.first != nodes[1].stream - 1)
    #expect(!StreamNumbers(node: "one", random: 77).isOwn(others.first + 9))
  }
}
