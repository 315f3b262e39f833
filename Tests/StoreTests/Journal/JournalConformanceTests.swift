import Cluster
import Foundation
import Store
import Support
import TestKit
import Testing

/// The conformance suite of all journals, whatever they store their records in.
@Suite("Conformance of every journal")
struct JournalConformanceTests {
  /// A journal, with the means to reopen it as a new process would.
  final class Subject: CustomTestStringConvertible, Sendable {
    enum Kind: String, CaseIterable { case memory, sqlite, relaxed, postgres, cached }

    let kind: Kind
    private let directory: TemporaryDirectory
    private let database: String

    init(_ kind: Kind) throws {
      self.kind = kind
      directory = try TemporaryDirectory()
      database = kind == .postgres || kind == .cached ? try PostgresServer.shared().makeDatabase() : ""
    }

    var testDescription: String { kind.rawValue }

    func open() throws -> any TransactionJournal {
      switch kind {
      case .memory: MemoryJournal(identity: identity)
      case .sqlite: try openJournal(in: directory)
      case .relaxed: try openJournal(in: directory, .relaxed(milliseconds: 1))
      case .postgres: try PostgresJournal(database) { identity }
      case .cached: try openCached()
      }
    }

    private func openCached() throws -> CachedJournal {
      let journal = CachedJournal(
        try PostgresJournal(database) { identity },
        JournalCache(try openJournal(in: directory, JournalCache.durability)))
      journal.keepCache { _ in }
      return journal
    }

    /// Closes and reopens the journal.
    func reopen(_ journal: any TransactionJournal) throws -> any TransactionJournal {
      guard kind != .memory else { return journal }
      journal.close()
      return try open()
    }
  }

  @Test(
    "Appended records are read back in order, from any revision, and after reopening", arguments: Subject.Kind.allCases)
  func appending(_ kind: Subject.Kind) throws {
    let subject = try Subject(kind)
    var journal = try subject.open()
    #expect(journal.identity == identity)
    #expect(journal.bounds == JournalBounds(base: 0, last: 0))
    #expect(try journal.all().isEmpty)
    try journal.append([record(1), record(2, "")], after: 0)
    try journal.append(records(3...10), after: 2)
    let written = [record(1), record(2, "")] + records(3...10)
    for _ in 0..<2 {
      #expect(journal.bounds == JournalBounds(base: 0, last: 10))
      for revision in UInt64(0)...10 {
        #expect(try journal.all(after: revision) == Array(written.dropFirst(Int(revision))))
      }
      #expect(try journal.records(after: 3, limit: 2, bytes: .max, waiting: .zero) == records(4...5))
      #expect(try journal.records(after: 3, limit: .max, bytes: 10, waiting: .zero) == records(4...5))
      #expect(try journal.records(after: 3, limit: .max, bytes: 0, waiting: .zero) == records(4...4))
      #expect(try journal.all(after: 99).isEmpty)
      journal = try subject.reopen(journal)
      #expect(journal.identity == identity)
    }
  }

  @Test("An append that does not follow on the last revision changes nothing", arguments: Subject.Kind.allCases)
  func following(_ kind: Subject.Kind) throws {
    let subject = try Subject(kind)
    let journal = try subject.open()
    try journal.append(records(1...2), after: 0)
    #expect(throws: JournalError.unexpectedRevision(expected: 1, last: 2)) { try journal.append([record(2)], after: 1) }
    #expect(throws: JournalError.unexpectedRevision(expected: 3, last: 2)) { try journal.append([record(4)], after: 3) }
    #expect(throws: JournalError.self) { try journal.append([record(4)], after: 2) }
    #expect(throws: JournalError.self) { try journal.append([record(3), record(3)], after: 2) }
    #expect(throws: JournalError.self) { try journal.append([], after: 2) }
    #expect(try journal.all() == records(1...2))
    try journal.append([record(3)], after: 2)
    #expect(journal.bounds.last == 3)
    withExtendedLifetime(subject) {}
  }

  @Test("A reader can wait for what comes", arguments: Subject.Kind.allCases)
  func waiting(_ kind: Subject.Kind) async throws {
    let subject = try Subject(kind)
    let journal = try subject.open()
    try journal.append([record(1)], after: 0)
    #expect(try journal.records(after: 1, limit: 9, bytes: .max, waiting: .milliseconds(1)).isEmpty)
    let reader = Task.detached { try journal.records(after: 1, limit: 9, bytes: .max, waiting: Deadline.patience) }
    try journal.append([record(2)], after: 1)
    #expect(try await reader.value == [record(2)])
    withExtendedLifetime(subject) {}
  }

  @Test("A snapshot gives back its blocks; what lies before it can be forgotten", arguments: Subject.Kind.allCases)
  func snapshots(_ kind: Subject.Kind) throws {
    let subject = try Subject(kind)
    var journal = try subject.open()
    try journal.append(records(1...9000), after: 0)
    #expect(try journal.snapshots().isEmpty)
    if !journal.isVolatile { #expect(throws: JournalError.self) { try journal.compact(upTo: 5) } }
    #expect(throws: JournalError.self) { try journal.write(snapshotAt: 9001, []) }
    try journal.write(snapshotAt: 5000, ["five", "thousand", String(repeating: "x", count: 100_000)])
    try journal.write(snapshotAt: 8000, [])
    try journal.write(snapshotAt: 8000, ["once more"])
    #expect(throws: JournalError.self) {
      try journal.writeSnapshot(at: 8500, milliseconds: 0) { throw CocoaError(.fileReadUnknown) }
    }
    for _ in 0..<2 {
      let found = try journal.snapshots()
      #expect(found.map(\.revision) == [8000, 5000])
      #expect(try journal.blocks(of: found[0]) == ["once more"])
      #expect(try journal.blocks(of: found[1]).map(\.count) == [4, 8, 100_000])
      journal = try subject.reopen(journal)
    }
    try journal.compact(upTo: 5000)
    try journal.compact(upTo: 5000)
    try journal.append([record(9001)], after: 9000)
    for _ in 0..<2 {
      #expect(journal.bounds == JournalBounds(base: 5000, last: 9001))
      #expect(throws: JournalError.compacted(base: 5000)) { try journal.all(after: 4999) }
      #expect(try journal.all(after: 5000) == records(5001...9001))
      #expect(try journal.snapshots().map(\.revision) == [8000, 5000])
      journal = try subject.reopen(journal)
    }
  }

  @Test("A journal begins anew under another schema, with the same epoch", arguments: Subject.Kind.allCases)
  func rebasing(_ kind: Subject.Kind) throws {
    let subject = try Subject(kind)
    var journal = try subject.open()
    try journal.append(records(1...5), after: 0)
    try journal.write(snapshotAt: 3, ["three"])
    var blocks = [Array("new".utf8)][...]
    #expect(throws: JournalError.self) { try journal.rebase(to: 9, schema: "b", milliseconds: 0) { nil } }
    try journal.rebase(to: 6, schema: "b", milliseconds: 0) { blocks.popFirst() }
    for _ in 0..<2 {
      #expect(journal.identity == JournalIdentity(epoch: identity.epoch, schema: "b"))
      #expect(journal.bounds == JournalBounds(base: 6, last: 6))
      let snapshots = try journal.snapshots()
      #expect(snapshots.map(\.revision) == [6])
      #expect(try journal.blocks(of: snapshots[0]) == ["new"])
      journal = try subject.reopen(journal)
    }
    try journal.append([record(7)], after: 6)
    #expect(try journal.all(after: 6) == [record(7)])
  }

  @Test("Revocations are kept, one of each sub, whatever becomes of the records", arguments: Subject.Kind.allCases)
  func revocations(_ kind: Subject.Kind) throws {
    let subject = try Subject(kind)
    var journal = try subject.open()
    #expect(try journal.revocations().isEmpty)
    let zero = "a\u{0}b"
    for (sub, time) in [("b", 5), ("a", 1), (zero, -7), ("\u{e4}", 2), ("a\u{308}", 3), ("b", 4), ("gone", 9)] {
      try journal.setRevocation(of: sub, to: Int64(time))
    }
    try journal.setRevocation(of: "gone", to: nil)
    try journal.setRevocation(of: "never there", to: nil)
    try journal.append([record(1)], after: 0)
    try journal.rebase(to: 2, schema: "b", milliseconds: 0) { nil }
    for _ in 0..<2 {
      let found = try journal.revocations()
      #expect(found.map { Array($0.subject.utf8) } == ["a", zero, "a\u{308}", "b", "\u{e4}"].map { Array($0.utf8) })
      #expect(found.map(\.milliseconds) == [1, -7, 3, 4, 2])
      try journal.recover()
      journal = try subject.reopen(journal)
    }
    journal.close()
    #expect(throws: JournalError.self) { try journal.setRevocation(of: "a", to: 0) }
    #expect(throws: JournalError.self) { try journal.setRevocation(of: "a", to: nil) }
    #expect(throws: JournalError.self) { try journal.revocations() }
  }

  @Test("After any operations a journal has the same records as a list", arguments: Subject.Kind.allCases)
  func randomly(_ kind: Subject.Kind) throws {
    var random = SplitMix64(seed: seed)
    let subject = try Subject(kind)
    var journal = try subject.open()
    var model: [JournalRecord] = []
    var (base, last): (UInt64, UInt64) = (0, 0)
    var snapshots: [UInt64: [String]] = [:]
    for _ in 0..<150 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        let count = UInt64.random(in: 1...20, using: &random)
        let bodies = (1...count).map { offset in
          record(last + offset, String(repeating: "b", count: Int.random(in: 0...200, using: &random)))
        }
        try journal.append(bodies, after: last)
        model += bodies
        last += count
      case 5:
        let revision = UInt64.random(in: base...last, using: &random)
        let blocks = (0..<Int.random(in: 0...4, using: &random)).map { "block \($0) of \(revision)" }
        try journal.write(snapshotAt: revision, blocks)
        snapshots[revision] = blocks
      case 6:
        guard let revision = snapshots.keys.sorted().randomElement(using: &random) else { continue }
        try journal.compact(upTo: revision)
        base = revision
        model.removeAll { $0.revision <= base }
        snapshots = snapshots.filter { $0.key >= base }
      case 7:
        journal = try subject.reopen(journal)
      case 8:
        journal.maintain()
        try journal.recover()
      default: break
      }
      let after = UInt64.random(in: base...last, using: &random)
      #expect(try journal.all(after: after) == model.filter { $0.revision > after }, "seed \(seed)")
      #expect(journal.bounds == JournalBounds(base: base, last: last), "seed \(seed)")
      #expect(try journal.snapshots().map(\.revision) == snapshots.keys.sorted(by: >), "seed \(seed)")
    }
    for snapshot in try journal.snapshots() {
      #expect(try journal.blocks(of: snapshot) == snapshots[snapshot.revision], "seed \(seed)")
    }
  }

  @Test("A closed journal says so", arguments: Subject.Kind.allCases)
  func closing(_ kind: Subject.Kind) throws {
    let subject = try Subject(kind)
    let journal = try subject.open()
    journal.close()
    journal.close()
    #expect(throws: JournalError.unusable("the journal is closed")) { try journal.append([record(1)], after: 0) }
    #expect(throws: JournalError.unusable("the journal is closed")) { try journal.all() }
    withExtendedLifetime(subject) {}
  }
}
