import Foundation
import Store
import TestKit
import Testing

@testable import Cluster

/// Records that one node sends to another, which applies them without the database.
@Suite("Records that nodes hand to each other")
struct HandedRecordsTests {
  private static let start = JournalDigest.start

  /// Returns the digest of records that follow a digest.
  private static func digest(_ records: [JournalRecord], from digest: JournalDigest = start) -> JournalDigest {
    records.reduce(digest) { $0.linked(to: $1) }
  }

  private static func handed(_ records: [JournalRecord], _ digest: JournalDigest, pen: String = "a") throws
    -> HandedRecords
  {
    try #require(HandedRecords(records, digest: digest, pen: pen))
  }

  @Test("The records that follow a revision are all new ones after it, from any beginning, each with its digest")
  func following() throws {
    let all = records(1...9)
    for (first, place) in [(1, 0), (1, 3), (4, 3), (2, 8), (9, 8)] as [(Int, UInt64)] {
      let handed = try Self.handed(Array(all[(first - 1)...]), Self.digest(all))
      let found = try #require(handed.following(on: place, Self.digest(Array(all.prefix(Int(place))))))
      #expect(found.map(\.record) == Array(all.dropFirst(Int(place))))
      for (record, digest) in found { #expect(digest == Self.digest(Array(all.prefix(Int(record.revision))))) }
    }
  }

  @Test("Records do not follow if the next is missing, they are known, or they do not match the digest")
  func refusing() throws {
    let all = records(1...9)
    let digest = Self.digest(all)
    func follows(_ some: [JournalRecord], on place: UInt64, _ last: JournalDigest? = nil) throws -> Bool {
      let known = Self.digest(Array(all.prefix(Int(place))))
      return try Self.handed(some, last ?? digest).following(on: place, known) != nil
    }
    #expect(try follows(Array(all[3...]), on: 3))
    #expect(try !follows(Array(all[4...]), on: 3), "a gap before them")
    #expect(try !follows(Array(all[3..<5] + all[6...]), on: 3), "a gap in them")
    #expect(try !follows(all, on: 9), "nothing new")
    #expect(try !follows(Array(all[3...]), on: 3, Self.digest(records(1...8))), "another digest")
    #expect(try !follows(Array(all[3...]).dropLast() + [record(9, "another")], on: 3), "another body")
    let late = JournalRecord(revision: 9, milliseconds: 1, body: all[8].body)
    #expect(try !follows(Array(all[3...]).dropLast() + [late], on: 3), "another time")
    // Another history leads to the revision.
    #expect(try Self.handed(Array(all[3...]), digest).following(on: 3, Self.digest([record(3)])) == nil)
    #expect(HandedRecords([], digest: digest, pen: "a") == nil)
  }

  // MARK: Between journals

  private let server: PostgresServer
  private let database: String

  init() throws {
    server = try .shared()
    database = try server.makeDatabase()
  }

  private func open(_ node: String, by link: FaultyProxy? = nil) throws -> PostgresJournal {
    var options = PostgresJournal.Options()
    options.node = node
    options.patience = .seconds(30)
    let name = database.split(separator: "/").last.map(String.init) ?? ""
    return try PostgresJournal(server.address(of: name, port: link?.port), options: options) { identity }
  }

  /// Makes two nodes, the second of which can no longer reach the database.
  private func parted() throws -> (one: PostgresJournal, other: PostgresJournal, way: FaultyProxy) {
    let way = try FaultyProxy(to: server.port)
    let (one, other) = (try open("one"), try open("other", by: way))
    try one.append(records(1...3), after: 0)
    #expect(try other.records(after: 0, limit: 9, bytes: .max, waiting: Deadline.patience) == records(1...3))
    way.refuse()
    return (one, other, way)
  }

  @Test("Records of another node are available without the database, are continued, and are handed on")
  func taking() throws {
    let (one, other, way) = try parted()
    try one.append(records(4...6), after: 3)
    let (revision, digest) = other.newest
    #expect(revision == 3)
    let handed = try #require(one.handed(after: revision, digest, bytes: .max))
    #expect(handed.records == records(4...6) && handed.pen == "one")
    #expect(other.take(handed))
    #expect(other.bounds.last == 6 && other.pen == "one" && !other.hasPen)
    #expect(try other.all(after: 3) == records(4...6))
    #expect(try other.digest(at: 6) == one.digest(at: 6))
    // The same records again are refused, older ones too; overlapping ones are taken.
    #expect(!other.take(handed))
    try one.append([record(7)], after: 6)
    #expect(try other.take(#require(one.handed(after: revision, digest, bytes: .max))))
    #expect(other.newest.revision == 7 && other.newest.digest == one.newest.digest)
    #expect(try #require(other.handed(after: revision, digest, bytes: .max)).records == records(4...7))
    try way.accept()
    try other.append([record(8)], after: 7)
    #expect(try open("reader").all() == records(1...8))
  }

  @Test("No more is handed over than so many bytes, and nothing to a node of another history, or of what is not there")
  func handing() throws {
    let one = try open("one")
    try one.append(records(1...6), after: 0)
    let size = record(1).body.count
    #expect(one.handed(after: 0, Self.start, bytes: 3 * size + 1)?.records == records(1...3))
    #expect(one.handed(after: 0, Self.start, bytes: 3 * size + 1)?.digest == Self.digest(records(1...3)))
    #expect(one.handed(after: 0, Self.start, bytes: size - 1) == nil)
    #expect(one.handed(after: 2, Self.digest(records(1...2)), bytes: .max)?.records == records(3...6))
    #expect(one.handed(after: 2, Self.digest([record(2)]), bytes: .max) == nil)
    #expect(one.handed(after: 6, Self.digest(records(1...6)), bytes: .max) == nil)
    #expect(one.handed(after: 7, Self.digest(records(1...7)), bytes: .max) == nil)
    // A journal that was just opened has no recent records in memory.
    #expect(try open("new").handed(after: 2, Self.digest(records(1...2)), bytes: .max) == nil)
    one.end(.otherHistory("a test"))
    #expect(one.handed(after: 2, Self.digest(records(1...2)), bytes: .max) == nil)
  }

  @Test("Records that do not follow are refused, so are all for a journal that has ended or is closed")
  func leaving() throws {
    let (one, other, _) = try parted()
    try one.append(records(4...6), after: 3)
    let digest = try #require(try one.digest(at: 6))
    let before = other.newest
    #expect(try !other.take(Self.handed(records(5...6), digest)))
    #expect(try !other.take(Self.handed(records(4...5) + [record(6, "another")], digest)))
    #expect(try !other.take(Self.handed(records(1...3), Self.digest(records(1...3)))))
    #expect(other.newest == before && other.bounds.last == 3)
    let good = try Self.handed(records(4...6), digest)
    let closed = try open("closed")
    closed.close()
    #expect(!closed.take(good))
    other.end(.otherHistory("a test"))
    #expect(!other.take(good))
  }

  @Test("A database that lacks what was handed over has lost it, and the epoch ends")
  func losing() throws {
    let (one, other, way) = try parted()
    try one.append(records(4...5), after: 3)
    #expect(try other.take(#require(one.handed(after: 3, other.newest.digest, bytes: .max))))
    one.close()
    // Like a standby that had less, and to which another node has appended.
    try server.execute(
      """
      BEGIN; DELETE FROM keyway.records WHERE revision > 4;
      UPDATE keyway.head SET last = 4, digest = (SELECT digest FROM keyway.records WHERE revision = 4); COMMIT
      """, in: database)
    let third = try open("third")
    try third.append([record(5, "another"), record(6)], after: 4)
    try way.accept()
    try other.refresh()
    #expect(throws: JournalError.self) { try other.all(after: 5) }
    #expect(throws: JournalError.self) { try other.append([record(6)], after: 5) }
    #expect(try open("next").identity.epoch != identity.epoch)
  }

  @Test("Reading and taking the same records at the same time have the same result")
  func racing() async throws {
    let (one, other) = (try open("one"), try open("other"))
    async let handing: Void = Task.detached {
      for revision in 1...300 as ClosedRange<UInt64> {
        try one.append([record(revision)], after: revision - 1)
        let (place, digest) = other.newest
        if let handed = one.handed(after: place, digest, bytes: .max) { _ = other.take(handed) }
      }
    }.value
    var last: UInt64 = 0
    while last < 300 {
      let more = try other.records(after: last, limit: 7, bytes: .max, waiting: Deadline.patience)
      for found in more {
        last += 1
        #expect(found == record(last))
      }
      try other.refresh()
    }
    try await handing
    #expect(other.newest.digest == one.newest.digest)
  }
}
