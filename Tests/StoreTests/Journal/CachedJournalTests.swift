import Cluster
import Foundation
import Store
import Support
import TestKit
import Testing

/// A node's local cache of a journal that it shares with others.
@Suite("The cache of a journal of several nodes")
struct CachedJournalTests {
  private let server: PostgresServer
  private let database: String
  private let way: FaultyProxy
  private let directory: TemporaryDirectory

  init() throws {
    server = try .shared()
    database = try server.makeDatabase()
    way = try FaultyProxy(to: server.port)
    directory = try TemporaryDirectory()
  }

  /// Opens the journal through a proxy that can be cut, with a cache.
  private func open(knowing position: JournalPosition? = nil) throws -> CachedJournal {
    let name = database.split(separator: "/").last.map(String.init) ?? ""
    var options = PostgresJournal.Options()
    options.patience = .seconds(10)
    let address = server.address(of: name, port: way.port)
    let origin =
      if let position {
        try PostgresJournal(address, options: options, known: position)
      } else {
        try PostgresJournal(address, options: options) { identity }
      }
    let cached = CachedJournal(origin, JournalCache(try openJournal(in: directory, JournalCache.durability)))
    cached.keepCache { _ in }
    return cached
  }

  /// Waits until the cache has reached a revision.
  private func isKept(_ journal: CachedJournal, _ revision: UInt64) -> Bool {
    Deadline().awaits { journal.cache?.journal?.bounds.last == revision }
  }

  /// Returns the end of the cache, which must not be open.
  private func position() throws -> JournalPosition {
    let cache = try openJournal(in: directory)
    defer { cache.close() }
    return try cache.position()
  }

  @Test("Records of this node and others are cached with the same digests; no request waits for that")
  func following() throws {
    let journal = try open()
    let other = try PostgresJournal(database) { identity }
    try journal.append(records(1...3), after: 0)
    _ = try other.records(after: 0, limit: 9, bytes: .max, waiting: Deadline.patience)
    try other.append(records(4...6), after: 3)
    #expect(isKept(journal, 6))
    #expect(try journal.cache?.journal?.digest(at: 6) == other.digest(at: 6))
    #expect(try journal.cache?.journal?.all() == records(1...6))
    journal.close()
    #expect(try position().digest == other.digest(at: 6))
  }

  @Test("Without the database, records and revocations are read from the cache")
  func alone() throws {
    var journal = try open()
    try journal.append(records(1...100), after: 0)
    try journal.setRevocation(of: "one", to: 5)
    try PostgresJournal(database) { identity }.setRevocation(of: "two", to: 6)
    #expect(Set(try journal.revocations().map(\.subject)) == ["one", "two"])
    #expect(isKept(journal, 100))
    journal.close()
    let position = try position()
    way.refuse()
    journal = try open(knowing: position)
    #expect(journal.identity == identity && journal.bounds == JournalBounds(base: 0, last: 100))
    #expect(try journal.all() == records(1...100))
    #expect(try journal.all(after: 99) == [record(100)])
    #expect(Set(try journal.revocations().map(\.subject)) == ["one", "two"])
    #expect(throws: JournalError.self) { try journal.append([record(101)], after: 100) }
    #expect(throws: JournalError.self) { try journal.refresh() }
    try way.accept()
    #expect(Deadline().awaits { (try? journal.append([record(101)], after: 100)) != nil })
    #expect(isKept(journal, 101))
  }

  @Test("A journal that is known to reach further than its database has it, is over, and ends the epoch")
  func furtherThanKnown() throws {
    var journal = try open()
    try journal.append(records(1...5), after: 0)
    #expect(isKept(journal, 5))
    journal.close()
    try server.execute(
      """
      BEGIN; DELETE FROM keyway.records WHERE revision > 3;
      UPDATE keyway.head SET last = 3, digest = (SELECT digest FROM keyway.records WHERE revision = 3); COMMIT
      """, in: database)
    journal = try open(knowing: try position())
    let ends = Locked<[JournalEnd]>([])
    journal.whenOver { end in ends.withLock { $0.append(end) } }
    #expect(Deadline().awaits { ends.withLock { $0.count } == 1 })
    if case .otherSchema = ends.withLock({ $0[0] }) { Issue.record("it is no other schema") }
    #expect(throws: JournalError.self) { try journal.confirm(5) }
    #expect(try PostgresJournal(database) { identity }.identity.epoch != identity.epoch)
  }

  @Test("A cache that is given up is taken away, and nothing of it is read")
  func givingUp() throws {
    let journal = try open()
    try journal.append(records(1...5), after: 0)
    #expect(isKept(journal, 5))
    journal.cache?.giveUp("it is of no use")
    #expect(journal.cache?.journal == nil)
    let reasons = Locked<[String?]>([])
    journal.cache?.whenChanged { reason in reasons.withLock { $0.append(reason) } }
    #expect(reasons.withLock { $0 } == ["it is of no use"])
    #expect(try journal.all() == records(1...5))
    try journal.append([record(6)], after: 5)
    journal.close()
    #expect(!SQLiteJournal.exists(inDirectory: directory.store))
  }
}
