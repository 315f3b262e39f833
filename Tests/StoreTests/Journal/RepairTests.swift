import Foundation
import TestKit
import Testing

@testable import Store

@Suite("Repairing a journal")
struct RepairTests {
  private func records(_ revisions: ClosedRange<UInt64>) -> [JournalRecord] { revisions.map(StoreFolder.record) }

  @Test("Up to the last acknowledged revision everything stays as it is, the epoch too; the old files are beside")
  func nothingLost() throws {
    let store = try StoreFolder(records: 20, snapshots: [10])
    let before = try store.bytes("journal.sqlite")
    let repair = try store.repair(until: 20)
    #expect(repair.identity == StoreFolder.identity)
    #expect(repair.previousEpoch == nil && repair.previousLast == 20)
    let aside = "journal.sqlite.damaged-\(StoreFolder.time)"
    #expect(repair.movedAside == [store.file(aside)])
    #expect(try store.bytes(aside) == before)
    let now = try store.contents()
    #expect(now.epoch == "aaaa" && now.records == records(1...20) && now.snapshots == [10])
  }

  @Test("Giving up acknowledged revisions changes the epoch, also of the snapshots, and moves later ones aside")
  func givingUp() throws {
    let store = try StoreFolder(records: 20, snapshots: [5, 10, 15])
    let repair = try store.repair(until: 12)
    #expect(repair.identity.epoch == "bbbb" && repair.previousEpoch == "aaaa" && repair.previousLast == 20)
    let now = try store.contents()
    #expect(now.epoch == "bbbb" && now.records == records(1...12) && now.snapshots == [10, 5])
    #expect(store.has(StoreFolder.snapshot(15) + ".damaged-\(StoreFolder.time)"))
    try store.use { journal in
      try journal.append([StoreFolder.record(13)], after: 12)
      var blocks: [[UInt8]] = []
      try journal.readSnapshot(try #require(try journal.snapshots().first)) { blocks.append($0) }
      #expect(blocks == ["state of 10", "and more"].map { Array($0.utf8) })
    }
    #expect(try store.inspect(\.problems).isEmpty)
  }

  @Test("Revocations stay; one that is damaged keeps the store from being opened, and a repair leaves it out")
  func revocations() throws {
    let store = try StoreFolder(records: 20)
    try store.use { journal in
      for sub in ["alice", "<bob>", "carol"] { try journal.setRevocation(of: sub, to: 7) }
    }
    #expect(try store.inspect(\.problems).isEmpty)
    try store.damage("journal.sqlite", at: "<bob>")
    #expect(throws: JournalError.self) { try store.use { try $0.revocations() } }
    let problems = try store.inspect(\.problems)
    #expect(problems.count == 1 && problems[0].reason.contains("revocation"), "\(problems)")
    _ = try store.repair(until: 20)
    #expect(try store.use { try $0.revocations().map(\.subject) } == ["alice", "carol"])
    #expect(try store.contents().records == records(1...20))
  }

  @Test("Beyond a damaged record nothing is repaired, and the message has the last good revision")
  func damagedRecord() throws {
    let store = try StoreFolder(records: 20)
    try store.damage(record: 8)
    let before = try store.bytes("journal.sqlite")
    let error = try #require(throws: JournalError.self) { try store.repair(until: 20) }
    #expect("\(error)".contains("whole up to revision 7 only"), "\(error)")
    #expect(try store.bytes("journal.sqlite") == before)
    #expect(try store.names().allSatisfy { !$0.contains("repaired") && !$0.contains("damaged") })
    #expect(try store.repair(until: 7).identity.epoch == "bbbb")
    #expect(try store.contents().records == records(1...7))
  }

  @Test("A snapshot bridges damaged records: only how it came about is lost, and the epoch stays")
  func bridging() throws {
    let store = try StoreFolder(records: 20, snapshots: [3, 12])
    try store.damage(record: 8)
    let repair = try store.repair(until: 20)
    #expect(repair.bounds == JournalBounds(base: 12, last: 20))
    #expect(repair.previousBase == 0 && repair.previousEpoch == nil)
    let now = try store.contents()
    #expect(now.epoch == "aaaa" && now.records == records(13...20) && now.snapshots == [12])
  }

  @Test("A damaged snapshot where the records begin: a later one does, and without one it is said what is impossible")
  func damagedBase() throws {
    let store = try StoreFolder(records: 20, snapshots: [5, 12], compactedUpTo: 5)
    let alone = try StoreFolder(records: 20, snapshots: [5], compactedUpTo: 5)
    for store in [store, alone] { try store.damage(StoreFolder.snapshot(5), at: "state of") }
    #expect(try store.repair(until: 18).bounds == JournalBounds(base: 12, last: 18))
    #expect(try store.contents().snapshots == [12])
    let error = try #require(throws: JournalError.self) { try alone.repair(until: 18) }
    #expect("\(error)".contains("no intact state begins at or before revision 18"), "\(error)")
  }

  @Test("If the head is damaged, epoch and schema come from a snapshot")
  func damagedHead() throws {
    let store = try StoreFolder(records: 20, snapshots: [10])
    try store.damage("journal.sqlite", at: #""epoch":"aaaa""#)
    #expect(throws: JournalError.self) { try store.use { _ in } }
    let repair = try store.repair(until: 20)
    #expect(repair.identity == StoreFolder.identity)
    #expect(try store.contents().records == records(1...20))
  }

  @Test("If no file has the schema, it has to be given; the epoch is another")
  func damagedHeadAlone() throws {
    let store = try StoreFolder(records: 20)
    try store.damage("journal.sqlite", at: #""epoch":"aaaa""#)
    #expect(throws: JournalError.self) { try store.repair(until: 20) }
    let repair = try store.repair(until: 20, schema: StoreFolder.identity.schema)
    #expect(repair.identity == JournalIdentity(epoch: "bbbb", schema: StoreFolder.identity.schema))
    #expect(try store.contents().records == records(1...20))
  }

  @Test("A mark that is missing or not whole: nobody knows what was acknowledged, so the epoch is another")
  func damagedMark() throws {
    for isMissing in [true, false] {
      let store = try StoreFolder(records: 20)
      if isMissing { try store.remove("acknowledged") } else { try store.write("acknowledged", Data([1, 2, 3])) }
      #expect(try store.inspect(\.problems).count == 1)
      #expect(try store.repair(until: 20).identity.epoch == "bbbb")
      #expect(try store.contents().records == records(1...20))
      #expect(try store.inspect(\.problems).isEmpty)
    }
  }

  @Test("A database that SQLite does not take for one, or that is gone, leaves the snapshots")
  func noDatabase() throws {
    for isMissing in [true, false] {
      let store = try StoreFolder(records: 20, snapshots: [10, 15])
      if isMissing {
        try store.remove("journal.sqlite")
        // A file that an interrupted repair may have left.
        try store.write("journal.sqlite.repaired", Data(repeating: 7, count: 8192))
      } else {
        try store.write("journal.sqlite", Data(repeating: 7, count: 8192))
      }
      #expect(throws: JournalError.self) { try store.repair(until: 20) }
      #expect(try store.repair(until: 15).bounds == JournalBounds(base: 15, last: 15))
      let now = try store.contents()
      #expect(now.epoch == "bbbb" && now.records.isEmpty && now.snapshots == [15])
    }
  }

  @Test("A repair wants the store for itself, and a store")
  func inUse() throws {
    let store = try StoreFolder(records: 3)
    try store.use { _ in
      let error = try #require(throws: JournalError.self) { try store.repair(until: 3) }
      guard case .inUse = error else { throw error }
    }
    #expect(throws: JournalError.self) {
      try SQLiteJournal.repair(directory: "/nonexistent/store", until: 1, milliseconds: 0, newEpoch: { "b" })
    }
  }

  @Test("After a repair the store is free, though a child that was started meanwhile has its files open")
  func inherited() throws {
    let store = try StoreFolder(records: 3)
    var copies: [Int32] = []
    defer { for copy in copies { _ = close(copy) } }
    _ = try SQLiteJournal.repair(directory: store.path, until: 3, milliseconds: 0, isEpochNew: true) {
      // Copies the descriptors, as `fork` does.
      copies = openDescriptors(of: store.file("lock"), store.file("journal.sqlite")).map { dup($0) }
      return "bbbb"
    }
    #expect(copies.count >= 2)
    #expect(try store.contents().records.count == 3)
  }

  private func openDescriptors(of paths: String...) -> [Int32] {
    let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return descriptors.compactMap(Int32.init).filter { descriptor in
      paths.contains((try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")) ?? "")
    }
  }

  @Test("A repair that was interrupted at any place has the same result when repeated")
  func interrupted() throws {
    let before = try StoreFolder(records: 20, snapshots: [5, 10, 15])
    let after = try StoreFolder(copying: before)
    _ = try after.repair(until: 12)
    let drafts = ["journal.sqlite"] + [5, 10].map(StoreFolder.snapshot)
    for step in 0..<6 {
      let store = try StoreFolder(copying: before)
      // The draft of the database, the drafts of snapshots, the unusable files moved aside, the old database, the new
      // one, the new snapshots; only the mark is missing.
      try FileManager.default.copyItem(
        atPath: after.file("journal.sqlite"), toPath: store.file("journal.sqlite.repaired"))
      for name in drafts.dropFirst() where step > 0 {
        try FileManager.default.copyItem(atPath: after.file(name), toPath: store.file(name + ".repaired"))
      }
      if step > 1 { try store.rename(StoreFolder.snapshot(15), to: StoreFolder.snapshot(15) + ".damaged-x") }
      if step > 2 { try store.rename("journal.sqlite", to: "journal.sqlite.damaged-x") }
      if step > 3 { try store.rename("journal.sqlite.repaired", to: "journal.sqlite") }
      for name in drafts.dropFirst() where step > 4 { try store.take(name, from: after) }
      for name in drafts.dropFirst() where step > 4 { try store.remove(name + ".repaired") }
      if step > 2 { #expect(throws: JournalError.self, "step \(step)") { try store.use { _ in } } }
      _ = try store.repair(until: 12)
      let now = try store.contents()
      #expect(now.epoch == "bbbb" && now.records == records(1...12) && now.snapshots == [10, 5], "step \(step)")
      #expect(try store.names(in: "snapshots").allSatisfy { !$0.hasSuffix(".repaired") }, "step \(step)")
    }
  }

  @Test(
    "With any changed bytes in the database or its log, records found intact are those that were written",
    arguments: ["journal.sqlite", "journal.sqlite-wal"])
  func randomDamage(_ file: String) throws {
    var random = SplitMix64(seed: seed)
    let whole =
      file == "journal.sqlite"
      ? try StoreFolder(records: 120, snapshots: [60]) : try StoreFolder(killedAfter: 120, snapshots: [60])
    let bytes = try whole.bytes(file)
    var damaged = 0
    for round in 0..<60 {
      let store = try StoreFolder(copying: whole)
      var changed = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      try store.write(file, changed)
      let reach = try store.inspect { inspection -> UInt64 in
        var reached: UInt64 = 0
        for start in inspection.starts {
          var reader = inspection.reader(from: start)
          var found: [JournalRecord] = []
          while let records = reader.next() { found += records }
          #expect(
            found == (start.revision..<reader.revision).map { StoreFolder.record($0 + 1) }, "seed \(seed), \(round)")
          reached = max(reached, reader.revision)
        }
        return reached
      }
      damaged += reach < 120 ? 1 : 0
      #expect(reach >= 60, "the snapshot is there; seed \(seed), round \(round)")
      let repair = try store.repair(until: reach)
      #expect(repair.bounds.last == reach)
      let now = try store.contents()
      #expect(
        now.records == (now.bounds.base..<reach).map { StoreFolder.record($0 + 1) }, "seed \(seed), round \(round)")
    }
    #expect(damaged > 0)
  }
}

@Suite("Old records are taken away a little at a time")
struct RemovalTests {
  @Test("a removal takes as many records as it may, and no more bytes, but for one record")
  func pieces() throws {
    let directory = try TemporaryDirectory()
    let database = try JournalDatabase("\(directory.path)/journal.db", .synced)
    defer { database.close() }
    var random = SplitMix64(seed: seed)
    let sizes = (0..<300).map { _ in Int.random(in: 1...(random.chance(10) ? 40_000 : 200), using: &random) }
    try database.append(
      sizes.enumerated().map { index, size in
        (record(UInt64(index + 1), String(repeating: "x", count: size)), JournalDigest(value: UInt64(index)))
      })
    let head = JournalDatabase.Head(epoch: "e", schema: "", base: 0, baseDigest: .start)
    let (base, limit, bytes) = (250, 20, 10_000)
    var first = 0
    var goesOn = true
    while goesOn {
      var end = first
      while end < base, end - first < limit, end == first || sizes[first...end].reduce(0, +) <= bytes { end += 1 }
      goesOn = try database.remove(upTo: UInt64(base), limit: limit, bytes: bytes)
      #expect(goesOn == (end < base), "seed \(seed)")
      #expect(try database.digest(at: UInt64(end), head) == nil, "seed \(seed)")
      #expect(try database.digest(at: UInt64(end + 1), head)?.value == UInt64(end), "seed \(seed)")
      first = end
    }
    #expect(first == base)
    #expect(try !database.remove(upTo: UInt64(base), limit: limit, bytes: bytes))
    #expect(try database.lastRevision() == 300)
  }
}
