import Foundation
import GRDB
import Store
import Testing

@Suite("Backups of a journal, and what begins anew")
struct RestoringTests {
  private func backup(_ store: StoreFolder, at revision: UInt64, to path: String) throws -> SnapshotFile {
    let journal = try SQLiteJournal(reading: store.path)
    defer { journal.close() }
    var blocks = ["a", "b"][...]
    try journal.writeBackup(at: revision, milliseconds: 9, to: path) { blocks.popFirst().map { Array($0.utf8) } }
    return try SnapshotFile(path: path)
  }

  @Test("A backup has epoch, revision and schema; restored, it has another epoch and the same blocks")
  func restoring() throws {
    let store = try StoreFolder(records: 20)
    let file = try backup(store, at: 17, to: store.file("b"))
    #expect(file.header.epoch == "aaaa" && file.header.revision == 17 && file.header.schema == "entities: {A: {}}\n")
    let other = try StoreFolder(records: 0)
    try JournalInstallation.restore(file, to: other.path, epoch: "cccc", replacing: false, milliseconds: 0)
    let now = try other.contents()
    #expect(now.epoch == "cccc" && now.bounds == JournalBounds(base: 17, last: 17) && now.snapshots == [17])
    try other.use { journal in
      var blocks: [[UInt8]] = []
      try journal.readSnapshot(try #require(try journal.snapshots().first)) { blocks.append($0) }
      #expect(blocks == [Array("a".utf8), Array("b".utf8)])
      try journal.append([StoreFolder.record(18)], after: 17)
    }
    #expect(try other.inspect(\.problems).isEmpty)
  }

  @Test("A store with records is replaced only when that is asked for, and is a store still where it was moved")
  func replacing() throws {
    let store = try StoreFolder(records: 20, snapshots: [10])
    let file = try backup(store, at: 17, to: store.file("b"))
    #expect(throws: JournalError.self) {
      try JournalInstallation.restore(file, to: store.path, epoch: "cccc", replacing: false, milliseconds: 0)
    }
    #expect(try store.contents().epoch == "aaaa")
    let aside = try #require(
      try JournalInstallation.restore(
        file, to: store.path, epoch: "cccc", replacing: true, milliseconds: 1_700_000_000_000))
    #expect(aside == store.file("replaced-\(StoreFolder.time)"))
    #expect(try store.contents().bounds.last == 17)
    let old = try SQLiteJournal(directory: aside, durability: .synced) { StoreFolder.identity }
    #expect(old.bounds.last == 20 && old.identity.epoch == "aaaa")
    #expect(try old.snapshots().map(\.revision) == [10])
    old.close()
  }

  @Test("Revocations are part of a backup; a restore keeps those of the store that it replaces, the later of each sub")
  func revocations() throws {
    let store = try StoreFolder(records: 20)
    try store.use { journal in
      for (sub, time) in [("a", 5), ("b", 5), ("c", 5)] {
        try journal.setRevocation(of: sub, to: Int64(time))
      }
    }
    let file = try backup(store, at: 17, to: store.file("b"))
    try store.use { journal in
      for (sub, time) in [("b", 9), ("c", 1), ("d", 2)] {
        try journal.setRevocation(of: sub, to: Int64(time))
      }
      try journal.setRevocation(of: "a", to: nil)
    }
    let other = try StoreFolder(records: 0)
    try JournalInstallation.restore(file, to: other.path, epoch: "cccc", replacing: false, milliseconds: 0)
    #expect(try other.use { try $0.revocations().map(\.milliseconds) } == [5, 5, 5])
    try JournalInstallation.restore(file, to: store.path, epoch: "cccc", replacing: true, milliseconds: 0)
    let merged = try store.use { try $0.revocations() }
    #expect(merged.map(\.subject) == ["a", "b", "c", "d"] && merged.map(\.milliseconds) == [5, 9, 5, 2])
  }

  @Test("A store from before there were revocations can be read, backed up and opened, and then has them")
  func withoutRevocations() throws {
    let store = try StoreFolder(records: 20)
    let queue = try DatabaseQueue(path: store.file("journal.sqlite"))
    try queue.write { db in
      try db.execute(sql: "DROP TABLE revocation; DELETE FROM grdb_migrations WHERE identifier LIKE '2:%'")
    }
    try queue.close()
    #expect(try backup(store, at: 17, to: store.file("b")).header.revocations == [])
    #expect(try store.inspect(\.problems).isEmpty)
    try store.use { journal in
      #expect(try journal.revocations().isEmpty)
      try journal.setRevocation(of: "alice", to: 5)
    }
    #expect(try store.use { try $0.revocations() } == [Revocation(subject: "alice", milliseconds: 5)])
    #expect(try store.contents().bounds.last == 20)
  }

  @Test("A backup with a byte changed or cut off anywhere changes nothing")
  func damagedBackup() throws {
    let store = try StoreFolder(records: 20)
    let path = store.file("b")
    let whole = try backup(store, at: 17, to: path)
    let bytes = try store.bytes("b")
    for place in stride(from: 0, to: bytes.count, by: 7) {
      var changed = bytes
      changed[place] ^= 1
      for damaged in [changed, bytes.prefix(place)] {
        try store.write("b", damaged)
        #expect(throws: JournalError.self, "byte \(place)") {
          let file = try SnapshotFile(path: path)
          try JournalInstallation.restore(file, to: store.path, epoch: "cccc", replacing: true, milliseconds: 0)
        }
      }
    }
    try store.write("b", bytes)
    #expect(whole.header.revision == 17)
    #expect(try store.contents().bounds.last == 20)
  }

  @Test("If a restore is interrupted at any place, the journal is the old one or the new one")
  func interruptedRebase() throws {
    for base: UInt64 in [0, 12] {
      let before = try StoreFolder(records: 20, snapshots: base > 0 ? [12, 16] : [16], compactedUpTo: base)
      let after = try StoreFolder(copying: before)
      try after.use { journal in
        var blocks = ["new"][...]
        try journal.rebase(to: 21, schema: "other\n", milliseconds: 3) { blocks.popFirst().map { Array($0.utf8) } }
      }
      for step in 0..<5 {
        let store = try StoreFolder(copying: before)
        if step == 0 { try store.write(StoreFolder.snapshot(21) + ".draft", Data("keyway sn".utf8)) }
        if step > 0 { try store.take(StoreFolder.snapshot(21), from: after) }
        if step > 1 { try store.take("journal.sqlite", from: after) }
        if step > 2 { try store.take("acknowledged", from: after) }
        if step > 3 { try store.remove(StoreFolder.snapshot(16)) }
        #expect(try store.inspect(\.problems).isEmpty, "step \(step)")
        let now = try store.contents()
        if step < 2 {
          #expect(now.bounds == JournalBounds(base: base, last: 20) && now.snapshots.first == 16, "step \(step)")
          // And it continues, with the revision that the other would have had too.
          try store.use { journal in
            try journal.append([StoreFolder.record(21)], after: 20)
            #expect(try journal.snapshots().first?.revision == 16)
            try StoreFolder.write(journal, 21)
            #expect(try journal.snapshots().first?.revision == 21)
          }
        } else {
          #expect(now.bounds == JournalBounds(base: 21, last: 21) && now.snapshots == [21], "step \(step)")
          #expect(try store.use(\.identity.schema) == "other\n")
        }
      }
    }
  }

  @Test("A state that cannot be written down leaves the journal as it is")
  func failingRebase() throws {
    struct Failure: Error {}
    let store = try StoreFolder(records: 20, snapshots: [16])
    try store.use { journal in
      #expect(throws: JournalError.self) {
        try journal.rebase(to: 21, schema: "other", milliseconds: 3) { throw Failure() }
      }
      try journal.append([StoreFolder.record(21)], after: 20)
    }
    #expect(try store.contents().records.count == 21)
    #expect(try store.names(in: "snapshots").count == 1)
  }
}
