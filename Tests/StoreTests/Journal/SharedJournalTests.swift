import Foundation
import Store
import Support
import TestKit
import Testing

@testable import Cluster

/// Several nodes that append to one journal, and a database that fails.
@Suite("A journal of several nodes")
struct SharedJournalTests {
  private let server: PostgresServer
  private let database: String

  init() throws {
    server = try .shared()
    database = try server.makeDatabase()
  }

  private func open(_ node: String = "a", by address: String? = nil) throws -> PostgresJournal {
    var options = PostgresJournal.Options()
    options.node = node
    return try PostgresJournal(address ?? database, options: options) { identity }
  }

  /// Opens the journal of a node that reaches the database through a proxy.
  private func open(_ node: String, by link: FaultyProxy) throws -> PostgresJournal {
    let name = database.split(separator: "/").last.map(String.init) ?? ""
    return try open(node, by: server.address(of: name, port: link.port))
  }

  private static let append = PostgresJournal.appendMark

  @Test("Of two appends after the same revision one succeeds, and the other says how far the journal has come")
  func comparing() throws {
    let (one, other) = (try open("one"), try open("other"))
    try one.append([record(1, "mine")], after: 0)
    #expect(throws: JournalError.unexpectedRevision(expected: 0, last: 1)) {
      try other.append([record(1, "yours")], after: 0)
    }
    #expect(try other.all() == [record(1, "mine")])
    try other.append([record(2)], after: 1)
    #expect(try one.records(after: 1, limit: 9, bytes: .max, waiting: Deadline.patience) == [record(2)])
    #expect(one.pen == "other" && !one.hasPen && other.hasPen)
    #expect(throws: JournalError.unexpectedRevision(expected: 1, last: 2)) { try one.confirm(1) }
    try one.confirm(2)
  }

  @Test("Waiting for appends of others ends with the first of another node, and not with one of this node")
  func waitingForOthers() async throws {
    let (one, other) = (try open("one"), try open("other"))
    let isFinished = Locked(false)
    async let waited: Void = Task.detached {
      try one.waitForOthers(beyond: 0, for: Deadline.patience)
      isFinished.withLock { $0 = true }
    }.value
    for revision in 1...100 { try one.append([record(UInt64(revision))], after: UInt64(revision) - 1) }
    #expect(!isFinished.withLock { $0 })
    _ = try other.records(after: 99, limit: 9, bytes: .max, waiting: Deadline.patience)
    try other.append([record(101)], after: 100)
    try await waited
    #expect(one.bounds.last == 101)
    #expect(try one.records(after: 100, limit: 9, bytes: .max, waiting: .zero) == [record(101)])
    // A revision that is already known is not waited for.
    try one.waitForOthers(beyond: 100, for: Deadline.patience)
  }

  @Test("A database that forgets what it has prepared, as behind a pooler, carries out the same")
  func forgottenStatements() throws {
    let journal = try open()
    try journal.append([record(1)], after: 0)
    try journal.pool.with { connection throws(PostgresError) in
      _ = try connection.execute("DEALLOCATE ALL", within: Deadline.patience)
    }
    try journal.append([record(2)], after: 1)
    try journal.append([record(3)], after: 2)
    #expect(try open("reader").all() == records(1...3))
  }

  /// Appends the records. Returns false if others were first; then reads their records.
  private static func isFirst(
    _ journal: PostgresJournal, _ records: [JournalRecord], after last: UInt64
  ) throws -> Bool {
    do {
      try journal.append(records, after: last)
      return true
    } catch JournalError.unexpectedRevision {
      _ = try journal.records(after: last, limit: .max, bytes: .max, waiting: .zero)
      return false
    }
  }

  @Test("With any number of appending nodes, each record has one revision, and no node gets another")
  func racing() async throws {
    let written = Locked<[UInt64: String]>([:])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for node in ["a", "b", "c", "d"] {
        let journal = try open(node)
        group.addTask {
          var number = 0
          while number < 50 {
            let last = journal.bounds.last
            let text = "\(node) \(number)"
            if try Self.isFirst(journal, [record(last + 1, text), record(last + 2, text)], after: last) {
              number += 1
              written.withLock { $0[last + 1] = text }
            }
          }
        }
      }
      try await group.waitForAll()
    }
    let all = try open("reader").all()
    #expect(all.map(\.revision) == Array(1...400))
    for (revision, text) in written.withLock({ $0 }) {
      #expect(all[Int(revision) - 1] == record(revision, text))
      #expect(all[Int(revision)] == record(revision + 1, text))
    }
    #expect(written.withLock { $0.count } == 200)
  }

  @Test("An append whose answer is lost succeeds once, also where another node has gone on from it")
  func lostAnswer() throws {
    let link = try FaultyProxy(to: server.port, answerMark: "Z")
    let (one, other) = (try open("one", by: link), try open("other"))
    try one.append([record(1)], after: 0)
    link.lose(.answer, of: Self.append)
    try one.append([record(2), record(3)], after: 1)
    link.lose(.answer, of: Self.append) {
      #expect(throws: Never.self) {
        _ = try other.records(after: 3, limit: 9, bytes: .max, waiting: Deadline.patience)
        try other.append([record(5)], after: 4)
      }
    }
    try one.append([record(4)], after: 3)
    #expect(try one.records(after: 4, limit: 9, bytes: .max, waiting: Deadline.patience) == [record(5)])
    #expect(try open("reader").all() == records(1...5))
  }

  @Test("An append that never arrives is made again, unless another node was first, also with an equal record")
  func lostRequest() throws {
    let link = try FaultyProxy(to: server.port, answerMark: "Z")
    let (one, other) = (try open("one", by: link), try open("other"))
    link.lose(.request, of: Self.append)
    try one.append([record(1)], after: 0)
    link.lose(.request, of: Self.append) {
      #expect(throws: Never.self) {
        _ = try other.records(after: 0, limit: 9, bytes: .max, waiting: Deadline.patience)
        try other.append([record(2)], after: 1)
      }
    }
    #expect(throws: JournalError.self) { try one.append([record(2)], after: 1) }
    #expect(try open("reader").all() == records(1...2))
    try one.append([record(3)], after: 2)
    #expect(one.hasPen)
  }

  @Test("An append waits as long as a write may take, forwarding before it included, and not for a connection beyond")
  func appendDeadline() throws {
    #expect(PostgresJournal.Options().appendPatience + WriteTime.forwarding == WriteTime.whole)
    // It accepts connections and sends nothing: libpq itself would wait for ten minutes.
    let listener = try LoopbackListener()
    defer { listener.stop() }
    let pool = PostgresPool("postgres://keyway@127.0.0.1:\(listener.port)/keyway?connect_timeout=600&sslmode=disable")
    for read in [false, true] {
      #expect {
        let deadline = ContinuousClock.now + .milliseconds(50)
        if read { try pool.withReading(before: deadline) { _ in } } else { try pool.with(before: deadline) { _ in } }
      } throws: {
        if case PostgresError.unreachable = $0 { true } else { false }
      }
    }
  }

  @Test("A record at the revision of an unresolved append is matched to that append only, not to another of the node")
  func doubt() throws {
    for isSame in [true, false] {
      let database = try server.makeDatabase()
      let name = database.split(separator: "/").last.map(String.init) ?? ""
      let way = try FaultyProxy(to: server.port)
      var options = PostgresJournal.Options()
      options.patience = .seconds(10)
      let journal = try PostgresJournal(server.address(of: name, port: way.port), options: options) { identity }
      try journal.append([record(1)], after: 0)
      way.cut(.fromTarget)
      #expect { try journal.append([record(2)], after: 1) } throws: {
        if case JournalError.untrusted = $0 { true } else { false }
      }
      way.mend(resetting: true)
      if isSame {
        try journal.append([record(2)], after: 1)
      } else {
        #expect(throws: JournalError.unexpectedRevision(expected: 1, last: 2)) {
          try journal.append([record(2, "another")], after: 1)
        }
      }
      #expect(try PostgresJournal(database) { identity }.all() == records(1...2))
    }
  }

  @Test("A head that was asked for before the journal began anew, and comes after, is of no account")
  func lateHead() throws {
    for revision: UInt64 in [1, 2] {
      let journal = try PostgresJournal(server.makeDatabase()) { identity }
      try journal.append([record(1)], after: 0)
      let asked = journal.state.withLock { $0.asking }
      let head = try journal.readHead()
      try journal.rebase(to: revision, schema: "b", milliseconds: 0) { nil }
      try journal.note(head, asked: asked)
      #expect(journal.bounds == JournalBounds(base: revision, last: revision))
      try journal.append([record(revision + 1)], after: revision)
      #expect(try journal.all(after: revision) == [record(revision + 1)])
    }
  }

  @Test("A head that is read while an append of this node is on its way tells of no other node, unless that was first")
  func ownAppend() throws {
    let journal = try open("one")
    try journal.append([record(1)], after: 0)
    journal.state.withLock { state in
      let asked = state.asking
      var (mine, yours) = (state.head, state.head)
      (mine.last, mine.digest) = (2, mine.digest.linked(to: record(2, "mine")))
      (yours.last, yours.digest) = (2, yours.digest.linked(to: record(2, "yours")))
      state.appending = mine.digest
      #expect(state.keep(mine, asked: asked)?.isOthers == false)
      #expect(state.keep(yours, asked: asked)?.isOthers == true)
      // An append whose outcome this node has not learned.
      state.appending = nil
      #expect(state.keep(mine, asked: asked)?.isOthers == true)
    }
  }

  @Test("While the database is away reading the newest goes on; then everything goes on")
  func restarting() throws {
    let own = try PostgresServer()
    let database = try own.makeDatabase()
    var options = PostgresJournal.Options()
    options.patience = .milliseconds(300)
    let journal = try PostgresJournal(database, options: options) { identity }
    try journal.append(records(1...3), after: 0)
    try own.stop()
    #expect(try journal.all() == records(1...3))
    #expect(throws: JournalError.self) { try journal.append([record(4)], after: 3) }
    #expect(throws: JournalError.self) { try journal.confirm(3) }
    #expect(throws: JournalError.self) { try journal.revocations() }
    try own.start()
    #expect(Deadline().awaits { (try? journal.append([record(4)], after: 3)) != nil })
    try journal.confirm(4)
    #expect(try PostgresJournal(database) { identity }.all() == records(1...4))
  }

  @Test("A standby that takes the database's place has all that was appended, and the journal goes on with it")
  func failover() throws {
    let own = try PostgresServer()
    try own.addStandby()
    let name = try own.makeDatabase().split(separator: "/").last.map(String.init) ?? ""
    let way = try FaultyProxy(to: own.port)
    let journal = try PostgresJournal(own.address(of: name, port: way.port)) { identity }
    var last: UInt64 = 0
    for ending in PostgresServer.Ending.allCases {
      try journal.append([record(last + 1)], after: last)
      let before = own.port
      try own.failOver(ending)
      #expect(own.port != before && !own.hasStandby)
      way.lead(to: own.port)
      try journal.append([record(last + 2)], after: last + 1)
      try own.addStandby()
      last += 2
    }
    try journal.confirm(last)
    let other = try PostgresJournal(own.address(of: name)) { identity }
    #expect(try other.all() == records(1...last))
    #expect(other.identity == journal.identity)
  }

  @Test("A database that comes back without what a node has seen ends the epoch, once for all nodes")
  func lostRecords() throws {
    let (one, other) = (try open("one"), try open("other"))
    try one.append(records(1...5), after: 0)
    #expect(try other.records(after: 0, limit: 9, bytes: .max, waiting: Deadline.patience).count == 5)
    let told = Locked<[String]>([])
    one.whenOver { end in told.withLock { $0.append(end.reason) } }
    // Like a standby that had less.
    try server.execute(
      """
      BEGIN; DELETE FROM keyway.records WHERE revision > 3;
      UPDATE keyway.head SET last = 3, digest = (SELECT digest FROM keyway.records WHERE revision = 3); COMMIT
      """, in: database)
    #expect(throws: JournalError.self) { try one.confirm(5) }
    #expect(throws: JournalError.self) { try other.append([record(6)], after: 5) }
    #expect(throws: JournalError.self) { try other.confirm(5) }
    #expect(throws: JournalError.self) { try one.all() }
    #expect(told.withLock { $0.count } == 1)
    let after = try open("after")
    #expect(after.identity.epoch != identity.epoch)
    #expect(try after.all() == records(1...3))
    try after.append([record(4, "another")], after: 3)
    #expect(try open("next").identity == after.identity)
  }

  @Test("A database that has other records in their place ends the epoch too")
  func otherRecords() throws {
    let journal = try open()
    try journal.append(records(1...5), after: 0)
    try server.execute(
      "UPDATE keyway.head SET digest = digest + 1; UPDATE keyway.records SET digest = digest + 1 WHERE revision = 5",
      in: database)
    #expect(throws: JournalError.self) { try journal.confirm(5) }
    #expect(throws: JournalError.self) { try journal.append([record(6)], after: 5) }
  }

  @Test("A record that is not what was written is found")
  func damage() throws {
    try open().append(records(1...5), after: 0)
    try server.execute("UPDATE keyway.records SET body = 'x' WHERE revision = 4", in: database)
    let journal = try open("b")
    #expect(throws: JournalError.damaged(place: "the database, revision 4", reason: "it is not what was written")) {
      try journal.all()
    }
    #expect(try journal.all(after: 4) == [record(5)])
  }

  @Test("Snapshots of two nodes do not get in the way of one another; half of one is none")
  func snapshots() throws {
    let (one, other) = (try open("one"), try open("other"))
    try one.append(records(1...9), after: 0)
    _ = try other.records(after: 0, limit: 9, bytes: .max, waiting: Deadline.patience)
    var count = 0
    #expect(throws: JournalError.self) {
      try one.writeSnapshot(at: 5, milliseconds: 0) {
        count += 1
        if count == 2 { try other.write(snapshotAt: 5, ["five"]) }
        return count < 4 ? Array("block".utf8) : nil
      }
    }
    #expect(try other.snapshots().map(\.revision) == [5])
    #expect(try one.blocks(of: one.snapshots()[0]) == ["five"])
    try other.compact(upTo: 5)
    #expect(throws: JournalError.compacted(base: 5)) {
      try one.confirm(9)
      return try one.all(after: 2)
    }
    #expect(try server.execute("SELECT count(*) FROM keyway.blocks", in: database) == "1")
    #expect(try server.execute("SELECT min(revision) FROM keyway.records", in: database) == "6")
  }

  @Test("Revocations of one node are heard of by the others")
  func revocations() throws {
    let (one, other) = (try open("one"), try open("other"))
    let before = other.revocationChanges
    try one.setRevocation(of: "eve", to: 7)
    try other.confirm(0)
    #expect(other.revocationChanges == before + 1)
    #expect(try other.revocations() == [Revocation(subject: "eve", milliseconds: 7)])
  }

  @Test("Nodes that make the journal at the same time make one")
  func making() async throws {
    let identities = try await withThrowingTaskGroup(of: JournalIdentity.self) { group in
      for number in 0..<6 {
        group.addTask { [database] in
          try PostgresJournal(database) { JournalIdentity(epoch: "epoch\(number)", schema: "") }.identity
        }
      }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(identities.count == 1)
  }

  @Test("A database that is not there, and tables of a later program, are told")
  func refusing() throws {
    #expect(throws: JournalError.self) { try PostgresJournal("postgres://keyway@127.0.0.1:1/none") { identity } }
    try open().close()
    try server.execute("UPDATE keyway.head SET layout = 2", in: database)
    #expect(throws: JournalError.self) { try open() }
  }
}
