import Foundation
import Store
import Testing

@Suite("The files of a store, and what becomes of them")
struct StoreFilesTests {
  private func error(_ body: () throws -> Void) throws -> JournalError {
    try #require(throws: JournalError.self, performing: body)
  }

  // MARK: Contents of a copy

  @Test("After a clean stop the database is whole by itself")
  func cleanStop() throws {
    let store = try StoreFolder(records: 20)
    #expect(try store.has("journal.sqlite-wal") == false || store.bytes("journal.sqlite-wal").isEmpty)
    let copy = try StoreFolder(records: 0)
    for name in try copy.names() { try copy.remove(name) }
    try copy.write("journal.sqlite", try store.bytes("journal.sqlite"))
    let contents = try copy.contents()
    #expect(contents.epoch == "aaaa" && contents.records.count == 20)
  }

  @Test("A copy without the log of a store that was not stopped is refused, whatever else is missing, and found out")
  func missingLog() throws {
    for names in [["journal.sqlite"], ["journal.sqlite", "acknowledged"], ["journal.sqlite", "snapshots"]] {
      let killed = try StoreFolder(killedAfter: 20)
      let copy = try StoreFolder(records: 0)
      for name in try copy.names() { try copy.remove(name) }
      for name in names { try copy.take(name, from: killed) }
      for isEmpty in [false, true] {
        if isEmpty { try copy.write("journal.sqlite-wal", Data()) }
        let refusal = try error { try copy.use { _ in } }
        guard case .damaged = refusal else { throw refusal }
        #expect("\(refusal)".contains("journal.sqlite-wal"), "\(refusal)")
      }
      #expect(try copy.inspect(\.problems).contains { "\($0)".contains("journal.sqlite-wal") })
      // The intact records can be continued under another epoch.
      #expect(try copy.repair(until: 0).identity.epoch == "bbbb")
      #expect(try copy.contents().records.isEmpty)
    }
  }

  @Test("A store that was killed right after it was opened, compacted or stopped, or with all of its log, opens")
  func killed() throws {
    let store = try StoreFolder(killedAfter: 20)
    #expect(try store.contents().records.count == 20)
    for isCompacted in [false, true] {
      let living = try StoreFolder(records: 20)
      let copy = try living.use { journal in
        if isCompacted { try journal.shrink() }
        return try StoreFolder(copying: living)
      }
      #expect(try copy.contents().records.count == 20)
      #expect(try copy.contents().records.count == 20)
    }
  }

  @Test("If a restore into an empty directory was interrupted, no new store is created in its place")
  func interruptedRestore() throws {
    let store = try StoreFolder(records: 0)
    for name in try store.names() { try store.remove(name) }
    try FileManager.default.createDirectory(atPath: store.file("restoring"), withIntermediateDirectories: false)
    let refusal = try error { try store.use { _ in } }
    #expect("\(refusal)".contains("restore"), "\(refusal)")
    #expect(!store.has("journal.sqlite"))
  }

  // MARK: One writer

  @Test("A second writer is refused though the lock file was removed; a reader is not")
  func secondWriter() throws {
    let store = try StoreFolder(records: 3)
    try store.use { journal in
      for round in 0..<2 {
        try store.remove("lock")
        for attempt in [{ try store.use { _ in } }, { _ = try store.repair(until: 3) }] {
          let refusal = try error(attempt)
          guard case .inUse = refusal else { throw refusal }
        }
        try journal.append([StoreFolder.record(4 + UInt64(round))], after: 3 + UInt64(round))
        #expect(try store.inspect(\.last) == 4 + UInt64(round))
      }
    }
    #expect(try store.contents().records.count == 5)
  }

  // MARK: Removed files

  @Test("A directory that is removed or replaced is noticed: nothing is acknowledged that is not in it")
  func directory() throws {
    for isReplaced in [false, true] {
      let store = try StoreFolder(records: 3)
      let journal = try SQLiteJournal(directory: store.path, durability: .synced) { StoreFolder.identity }
      let aside = store.path + "-aside"
      try FileManager.default.moveItem(atPath: store.path, toPath: aside)
      let other = try StoreFolder(records: 3)
      if isReplaced { try FileManager.default.copyItem(atPath: other.path, toPath: store.path) }
      #expect(isRefused { try journal.checkPresence() })
      for _ in 0..<2 {
        #expect(isRefused { try journal.append([StoreFolder.record(4)], after: 3) })
        #expect(isRefused { try journal.recover() })
        #expect(isRefused { try journal.probe(bytes: 10) })
      }
      #expect(journal.bounds.last == 3)
      #expect(try journal.all().count == 3)
      #expect(store.has("journal.sqlite") == isReplaced, "nothing is made where it was")
      // It comes back as it was.
      if isReplaced { try FileManager.default.removeItem(atPath: store.path) }
      try FileManager.default.moveItem(atPath: aside, toPath: store.path)
      try journal.probe(bytes: 10)
      try journal.append([StoreFolder.record(4)], after: 3)
      journal.close()
      #expect(try store.contents().records.count == 4)
    }
  }

  /// Returns true if the journal refuses a call because it does not trust its files.
  private func isRefused(_ body: () throws -> Void) -> Bool {
    do {
      try body()
    } catch JournalError.untrusted {
      return true
    } catch {}
    return false
  }

  @Test("A log that is removed is noticed, and the journal puts what was in it in the database and goes on")
  func log() throws {
    let store = try StoreFolder(records: 3)
    try store.use { journal in
      try journal.append([StoreFolder.record(4)], after: 3)
      try store.remove("journal.sqlite-wal")
      #expect(isRefused { try journal.append([StoreFolder.record(5)], after: 4) })
      try journal.recover()
      try journal.append([StoreFolder.record(5)], after: 4)
      #expect(try StoreFolder(copying: store).contents().records.count == 5)
    }
    #expect(try store.contents().records.count == 5)
  }

  @Test("The file of a probe goes away, also where it does not fit")
  func probe() throws {
    let store = try StoreFolder(records: 3)
    try store.use { journal in
      try journal.probe(bytes: 200_000)
      #expect(!store.has("probe"))
      #expect(journal.bounds.last == 3)
    }
  }

  // MARK: Permissions

  private func mode(_ path: String) throws -> Int {
    try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
  }

  @Test("A store and its backups are for their owner alone")
  func permissions() throws {
    let store = try StoreFolder(records: 3, snapshots: [2])
    try store.use { journal in
      try journal.append([StoreFolder.record(4)], after: 3)
      var blocks = [[UInt8]("a".utf8)][...]
      try journal.writeBackup(at: 3, milliseconds: 0, to: store.file("backup")) { blocks.popFirst() }
      for name in try store.names() where name != "snapshots" {
        #expect(try mode(store.file(name)) & 0o077 == 0, "\(name)")
      }
      #expect(try mode(store.file(StoreFolder.snapshot(2))) & 0o077 == 0)
      for name in ["", "snapshots"] { #expect(try mode(store.file(name)) & 0o077 == 0, "\(name)") }
    }
  }

  @Test("The files of a store that others could read are closed to them when it is opened, and its group is left")
  func tightened() throws {
    let store = try StoreFolder(records: 3, snapshots: [2])
    for name in ["journal.sqlite", "acknowledged", "lock", "snapshots"] {
      try FileManager.default.setAttributes(
        [.posixPermissions: name == "snapshots" ? 0o755 : 0o644], ofItemAtPath: store.file(name))
    }
    try store.use { (_) throws in
      for name in ["journal.sqlite", "acknowledged", "lock", "snapshots"] {
        #expect(try mode(store.file(name)) & 0o007 == 0, "\(name)")
        #expect(try mode(store.file(name)) & 0o040 != 0, "\(name)")
      }
    }
  }
}
