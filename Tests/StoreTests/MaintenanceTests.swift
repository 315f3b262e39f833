import Foundation
import KeyValueModel
import Store
import TestKit
import Testing

@Suite("Verifying, copying and migrating a store")
struct MaintenanceTests {
  /// A folder with a store of accounts, removed with this object.
  private final class Folder {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-upkeep-\(UUID().uuidString)").path
    var store: String { "\(path)/store" }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func journal() throws -> SQLiteJournal {
      try SQLiteJournal(directory: store, durability: .synced) { JournalIdentity(epoch: "aaaa", schema: accounts) }
    }

    /// Opens the journal once the store that had it before has closed it.
    func journalInTime() throws -> SQLiteJournal {
      var taken: SQLiteJournal?
      _ = try Deadline().awaits {
        do { taken = try journal() } catch JournalError.inUse {}
        return taken != nil
      }
      return try #require(taken)
    }

    /// Appends transactions that set the balance of one account to their revision, and closes the journal.
    func append(_ revisions: ClosedRange<UInt64>) throws {
      let journal = try journal()
      defer { journal.close() }
      for revision in revisions {
        let account = try ref("Account/\(revision % 3)")
        let transaction = Transaction([.put(account, ["balance": .integer(Int64(revision))])], writer: nil)
        var body: [UInt8] = []
        transaction.appendJournalText(to: &body)
        try journal.append([JournalRecord(revision: revision, milliseconds: 1, body: body)], after: revision - 1)
      }
    }

    /// Writes a snapshot of the state at a revision, or of another state under that revision.
    func snapshot(at revision: UInt64, ofStateAt other: UInt64? = nil) throws {
      let journal = try journal()
      defer { journal.close() }
      let schema = try Schema(yaml: accounts)
      let model = try Recovery(journal, schema: schema, limits: StoreLimits()).run(through: other ?? revision).model
      var encoder = StateEncoder(model.state)
      try journal.writeSnapshot(at: revision, milliseconds: 1) { encoder.nextBlock() }
    }

    func verify() throws -> StoreVerification.Report { try StoreVerification.run(directory: store) }
  }

  @Test("Snapshots that are what the records come to are compared, and all is well")
  func wellKept() throws {
    let folder = Folder()
    try folder.append(1...30)
    for revision: UInt64 in [10, 20, 30] { try folder.snapshot(at: revision) }
    let report = try folder.verify()
    #expect(report.problems.isEmpty && report.comparedSnapshots == 3 && report.records == 30 && report.objects == 3)
    #expect(report.goodThrough == 30 && report.acknowledged == 30 && report.last == 30)
  }

  @Test("A snapshot that is whole and not what the records come to is found")
  func otherState() throws {
    let folder = Folder()
    try folder.append(1...30)
    try folder.snapshot(at: 20, ofStateAt: 19)
    let report = try folder.verify()
    #expect(report.problems.count == 1 && report.goodThrough == 19)
    #expect(report.problems.first?.reason.contains("differs from the state") == true, "\(report.problems)")
  }

  @Test("A damaged snapshot is a problem, and no reason to give anything up")
  func damagedSnapshot() throws {
    let folder = Folder()
    try folder.append(1...30)
    try folder.snapshot(at: 20)
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder.store + "/snapshots").first)
    try Data("keyway snapshot 1\n".utf8).write(to: URL(fileURLWithPath: "\(folder.store)/snapshots/\(name)"))
    let report = try folder.verify()
    #expect(report.problems.count == 1 && report.goodThrough == 30, "\(report.problems)")
  }

  @Test("A record that cannot be carried out, or not be understood, is found with its revision")
  func senseless() throws {
    for body in [#"[null,[["delete","Account/77"]]]"#, "nonsense"] {
      let folder = Folder()
      try folder.append(1...5)
      let journal = try folder.journal()
      try journal.append([JournalRecord(revision: 6, milliseconds: 1, body: Array(body.utf8))], after: 5)
      journal.close()
      let report = try folder.verify()
      #expect(report.problems.map(\.place) == ["revision 6"] && report.goodThrough == 5, "\(report.problems)")
    }
  }

  @Test("A backup ends with what is known to be on the disk, though the journal has more")
  func acknowledgedOnly() throws {
    let folder = Folder()
    try folder.append(1...5)
    let mark = try Data(contentsOf: URL(fileURLWithPath: folder.store + "/acknowledged"))
    try folder.append(6...9)
    try mark.write(to: URL(fileURLWithPath: folder.store + "/acknowledged"))
    let backup = try StoreBackup.write(directory: folder.store, to: folder.path + "/b", milliseconds: 7)
    #expect(backup.revision == 5 && backup.objects == 3 && backup.identity.epoch == "aaaa")
    let restored = try StoreRestoration.run(
      folder.path + "/b", to: folder.path + "/new", schema: "# the same\n" + accounts, epoch: "bbbb", replacing: false,
      milliseconds: 8)
    #expect(restored.source.revision == 5 && restored.objects == 3)
    let report = try StoreVerification.run(directory: folder.path + "/new")
    #expect(report.problems.isEmpty && report.identity?.epoch == "bbbb" && report.goodThrough == 5)
  }

  private func store(_ folder: Folder, _ yaml: String) throws -> (Store, SQLiteJournal) {
    let journal = try folder.journalInTime()
    let store = Store(
      schema: try Schema(yaml: yaml), journal: journal, limits: StoreLimits(), publisher: Recorder(), now: { 5 })
    return (store, journal)
  }

  @Test("Recovering under another schema makes one revision and tells each change; under the same, none")
  func migrating() throws {
    let folder = Folder()
    try folder.append(1...9)
    let wider = accounts.replacing("note: {type: string}", with: "note: {type: string}, limit: {type: integer}")
    do {
      let (first, journal) = try store(folder, wider)
      let remarks = try first.recover(schemaText: wider)
      #expect(remarks.contains { $0.contains("Account.limit") }, "\(remarks)")
      #expect(first.snapshot.revision == 10 && first.snapshot.oldestResumable == 10 && first.snapshot.state.count == 3)
      #expect(journal.bounds == JournalBounds(base: 10, last: 10) && journal.identity.schema == wider)
      first.close()
    }
    do {
      let (second, _) = try store(folder, wider)
      #expect(try second.recover(schemaText: "# later\n" + wider) == [])
      #expect(second.snapshot.revision == 10)
      second.close()
    }
    #expect(try folder.verify().problems.isEmpty)
  }

  @Test("If data would be lost, the store does not start, and the journal is unchanged")
  func refusing() throws {
    let folder = Folder()
    try folder.append(1...9)
    let narrower = "entities: {Account: {keys: {note: {type: string}, peer: {toOne: Account}}}}"
    let (store, journal) = try store(folder, narrower)
    let error = try #require(throws: StoreError.self) { try store.recover(schemaText: narrower) }
    guard case .schema(let obstacles) = error else { throw error }
    #expect(obstacles.contains { $0.contains("Account.balance") }, "\(obstacles)")
    #expect(journal.bounds == JournalBounds(base: 0, last: 9) && journal.identity.schema == accounts)
    store.close()
  }
}
