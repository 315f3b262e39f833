import Foundation
import KeyValueModel
import KeyValueObserving
import Support
import TestKit
import Testing

@testable import Store

/// A store that applies the commits of another.
@Suite("Commits of another node")
struct RecordTests {
  private static let yaml = """
    entities:
      Account:
        keys:
          balance: { type: integer }
          peer: { toOne: Account }
          others: { toMany: Account, ordered: true }
          ratio: { type: number }
          twice: { type: integer, computed: "balance * 2" }
    """

  private static let names = (0..<5).map { "Account/\($0)" }

  /// A store over a journal, with a clock that the test sets.
  private struct Fixture {
    let journal: any TransactionJournal
    let recorder = Recorder()
    let store: Store
    let restored = Locked<[StoredAttachment]>([])
    /// The clock in milliseconds.
    let clock: Locked<Int64>

    init(_ journal: any TransactionJournal, _ clock: Locked<Int64> = Locked(1_000_000)) throws {
      var limits = StoreLimits()
      limits.historyRevisions = 60
      limits.historySeconds = 20
      self.journal = journal
      self.clock = clock
      store = Store(
        schema: try Schema(yaml: RecordTests.yaml), journal: journal, limits: limits, publisher: recorder,
        now: { clock.withLock { $0 } }, elapsed: { UInt64(clock.withLock { $0 }) })
      _ = try store.recover()
    }

    /// Observes all objects except the last, which is created and deleted.
    func observe() throws {
      let entity = try #require(store.schema.entities.first)
      let paths = try ["balance", "twice", "peer.balance", "others"].map { try store.schema.resolve($0, from: entity) }
      for (index, name) in RecordTests.names.dropLast().enumerated() {
        let reference = try ref(name)
        let observations = paths.map { Observation(object: reference, keyPath: $0, options: [.old, .new, .prior]) }
        store.withPublication { publication in
          publication.observers.add(
            observations, of: ObserverID(UInt64(index + 1)), cell: name, in: publication.snapshot.state)
        }
      }
    }

    func write(_ operation: KeyValueModel.Operation, attachment: [UInt8]?) async {
      var kept: (@Sendable (Commit) -> [UInt8])?
      if let attachment { kept = { _ in attachment } }
      await withCheckedContinuation { continuation in
        _ = store.submit(Transaction([operation], writer: "w"), attachment: kept) { _, _, _ in
          continuation.resume()
        }
      }
    }

    func take(_ records: [JournalRecord], _ place: Store.RecordPlace = .appended) throws {
      try store.take(records, place) { attachments in restored.withLock { $0 += attachments } }
    }

    var records: [JournalRecord] {
      get throws { try journal.records(after: 0, limit: .max, bytes: .max, waiting: .zero) }
    }

    /// The published events by revision; the order of observers within a revision is arbitrary.
    var events: [[String]] {
      get throws {
        var events: [[String]] = []
        var last: Revision = 0
        for event in recorder.published.flatMap({ $0.events }) {
          try #require(event.revision >= last)
          if event.revision > last { events.append([]) }
          last = event.revision
          events[events.count - 1].append(describe(event))
        }
        return events.map { $0.sorted() }
      }
    }

    var portrait: [String] {
      let state = store.snapshot.state
      return state.all.map { entry in
        let values = entry.value.values.map(\.json).joined(separator: " ")
        return "\(entry.key) \(entry.value.revision) \(entry.value.createdAt) \(values)"
      }.sorted()
    }
  }

  private func journal(_ folder: Folder) throws -> SQLiteJournal {
    try SQLiteJournal(directory: folder.path, durability: .synced) {
      JournalIdentity(epoch: "test", schema: Self.yaml)
    }
  }

  private func operation(_ random: inout SplitMix64) throws -> KeyValueModel.Operation {
    let one = try ref(Self.names.randomElement(using: &random) ?? "")
    let other = Self.names.randomElement(using: &random) ?? ""
    let value = Int64.random(in: 0..<100, using: &random)
    return switch Int.random(in: 0..<6, using: &random) {
    case 0: .put(one, ["balance": .integer(value), "peer": .string(other)])
    case 1: .delete(try ref(Self.names[4]))
    case 2: .set(one, keyPath: "ratio", .number(Double(value) / 3))
    case 3: .insert(one, keyPath: "others", [.value(.string(other))], at: nil)
    default: .set(one, keyPath: "balance", .integer(value))
    }
  }

  private func balance(_ value: Int) throws -> KeyValueModel.Operation {
    .put(try ref("Account/0"), ["balance": .integer(Int64(value))])
  }

  @Test("State, events, history, bytes, digests and attachments are the other's, however the commits are cut up")
  func equality() async throws {
    var random = SplitMix64(seed: seed)
    let (first, second) = (Folder(), Folder())
    let leader = try Fixture(try journal(first))
    var follower = try Fixture(try journal(second), leader.clock)
    for name in Self.names { await leader.write(.create(try ref(name), [:]), attachment: nil) }
    try follower.take(try leader.records)
    try leader.observe()
    try follower.observe()
    var attachments = 0
    for _ in 0..<250 {
      leader.clock.withLock { $0 += Int64.random(in: 0..<700, using: &random) }
      let isMarked = Bool.random(using: &random)
      let before = leader.store.revision
      await leader.write(try operation(&random), attachment: isMarked ? Array("kept \(before)".utf8) : nil)
      if isMarked, leader.store.revision > before { attachments += 1 }
      guard Int.random(in: 0..<9, using: &random) == 0 else { continue }
      var rest = try leader.journal.records(
        after: follower.store.revision, limit: .max, bytes: .max, waiting: .zero)[...]
      while !rest.isEmpty {
        let part = rest.prefix(Int.random(in: 1...8, using: &random))
        // Some of it again, as after a lost connection.
        let again = Int.random(in: 0...2, using: &random)
        try follower.take(Array(try follower.records.suffix(again)) + Array(part))
        rest = rest.dropFirst(part.count)
      }
      #expect(follower.portrait == leader.portrait, "seed \(seed)")
      let isToldAlike = try follower.events == leader.events
      #expect(isToldAlike, "seed \(seed)")
      // Each second both drop history that is too old, each at its own time.
      for store in [leader.store, follower.store] { store.trimHistory() }
      #expect(follower.store.snapshot.oldestResumable == leader.store.snapshot.oldestResumable, "seed \(seed)")
    }
    try follower.take(
      try leader.journal.records(after: follower.store.revision, limit: .max, bytes: .max, waiting: .zero))
    let end = leader.store.revision
    #expect(end > 100 && attachments > 20)
    #expect(follower.restored.withLock { $0.count } == attachments)
    #expect(try follower.records == leader.records)
    for revision in 0...end {
      #expect(try follower.journal.digest(at: revision) == leader.journal.digest(at: revision))
    }
    #expect(try follower.journal.digest(at: end + 1) == nil)
    // It restarts with the commits that it applied, and can be verified.
    follower.store.trimHistory()
    let (portrait, oldest) = (follower.portrait, follower.store.snapshot.oldestResumable)
    follower.store.close()
    let report = try StoreVerification.run(directory: second.path)
    #expect(report.problems.isEmpty && report.last == end)
    follower = try Fixture(try journal(second), leader.clock)
    #expect(follower.portrait == portrait)
    follower.store.trimHistory()
    #expect(follower.store.snapshot.oldestResumable == oldest)
    follower.store.close()
    leader.store.close()
  }

  @Test("A record that does not follow, cannot be read, is refused or cannot be written changes nothing")
  func refusals() async throws {
    let leader = try Fixture(MemoryJournal(identity: JournalIdentity(epoch: "test", schema: "")))
    for value in 1...4 { await leader.write(try balance(value), attachment: nil) }
    let records = try leader.records
    let disk = FaultyJournal()
    let follower = try Fixture(disk)
    try follower.take(Array(records[..<2]))
    let portrait = follower.portrait
    let missing = #expect(throws: StoreError.self) { try follower.take([records[3]]) }
    #expect("\(try #require(missing))".contains("does not follow on revision 2"))
    let strange = JournalRecord(revision: 4, milliseconds: 0, body: Array("what is this".utf8))
    #expect(throws: StoreError.self) { try follower.take([records[2], strange]) }
    await leader.write(.delete(try ref("Account/0")), attachment: nil)
    let deletion = JournalRecord(revision: 4, milliseconds: 0, body: try #require(leader.records.last).body)
    let again = JournalRecord(revision: 5, milliseconds: 0, body: deletion.body)
    let refused = #expect(throws: StoreError.self) { try follower.take([records[2], deletion, again]) }
    #expect("\(try #require(refused))".contains("revision 5"))
    disk.faults.withLock { $0.append = .refused("the disk is full") }
    #expect(throws: StoreError.self) { try follower.take([records[2]]) }
    #expect(follower.store.condition == .unavailable("the disk is full"))
    #expect(follower.portrait == portrait && follower.store.revision == 2)
    disk.faults.withLock { $0.append = nil }
    try follower.take([records[2], records[3]])
    #expect(follower.store.condition == .serving)
    #expect(follower.store.revision == 4)
  }

  @Test("If both write to one journal, nothing is appended")
  func shared() async throws {
    let journal = MemoryJournal(identity: JournalIdentity(epoch: "test", schema: ""))
    let other = try Fixture(journal)
    let peer = try Fixture(journal)
    for value in 1...3 { await other.write(try balance(value), attachment: nil) }
    try peer.take(try other.records, .shared)
    #expect(journal.bounds.last == 3)
    #expect(peer.portrait == other.portrait)
    await peer.write(try balance(4), attachment: nil)
    #expect(journal.bounds.last == 4 && peer.store.revision == 4)
  }
}
