import Foundation
import KeyValueModel
import Store

/// A small store as a killed process leaves it. Tests damage and open copies of it.
final class DamagedStore {
  /// The outcome of a start.
  enum Outcome: Equatable {
    /// The state, all of it in bytes, with the epoch, the revision and the oldest resumable revision.
    case state(epoch: String, revision: Revision, oldest: Revision, objects: [UInt8])
    /// The store was refused, for a reason.
    case refused(String)

    /// The revision; nil if the store was refused.
    var revision: Revision? {
      if case .state(_, let revision, _, _) = self { return revision }
      return nil
    }
  }

  /// The files of the store, by their paths in its directory.
  private(set) var files: [String: [UInt8]] = [:]
  /// The expected outcome for each revision.
  private(set) var states: [Revision: Outcome] = [:]
  /// The last revision; `acknowledged` is the last acknowledged one.
  private(set) var last: Revision = 0
  private(set) var acknowledged: Revision = 0
  private let folder: URL
  private let limits: StoreLimits
  private var store: String { folder.appendingPathComponent("store").path }

  private static let yaml = """
    entities:
      Account: { keys: { balance: { type: integer }, note: { type: string }, peer: { toOne: Account } } }

    """

  /// Creates a store of a few dozen records. With `isCompacted` it has snapshots, and its first records are gone; with
  /// `hasUnacknowledged` its last record is on the disk but was never acknowledged.
  init(isCompacted: Bool, hasUnacknowledged: Bool) throws {
    // In memory if possible: these tests do not need a disk, and every start would wait for its syncs.
    let base =
      FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : FileManager.default.temporaryDirectory.path
    folder = URL(fileURLWithPath: base).appendingPathComponent("keyway-damage-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    var limits = StoreLimits()
    limits.historyRevisions = isCompacted ? 10 : 1000
    self.limits = limits
    let journal = try SQLiteJournal(directory: store, durability: .synced) {
      JournalIdentity(epoch: "k3f9ab", schema: Self.yaml)
    }
    var model = Model(schema: try Schema(yaml: Self.yaml))
    for number in 1...30 {
      if number == 30, hasUnacknowledged {
        acknowledged = last
        files["acknowledged"] = try read("acknowledged")
      }
      try Self.append(number, to: &model, journal)
      last = model.revision
      states[last] = outcome(model, oldest: 0)
      guard isCompacted, number == 12 || number == 20 else { continue }
      var encoder = StateEncoder(model.state)
      try journal.writeSnapshot(at: last, milliseconds: 1) { encoder.nextBlock() }
      if number == 20 { try journal.compact(upTo: 12) }
    }
    if !hasUnacknowledged { acknowledged = last }
    // The files while the process runs: records that are not yet in the database are in its log.
    let mark = files["acknowledged"]
    for path in try FileManager.default.subpathsOfDirectory(atPath: store) {
      if path != "snapshots" { files[path] = try read(path) }
    }
    if let mark { files["acknowledged"] = mark }
    journal.close()
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  private static func append(_ number: Int, to model: inout Model, _ journal: SQLiteJournal) throws {
    var operations: [KeyValueModel.Operation] = []
    let account = try ref("Account/\(number % 7)")
    if number <= 7 { operations.append(.create(account, [:])) }
    operations.append(.set(account, keyPath: "balance", .integer(Int64(number))))
    operations.append(.set(account, keyPath: "note", .string(String(repeating: "n\(number)", count: number))))
    let transaction = Transaction(operations, writer: "w\(number % 3)")
    let base = model.revision
    let commit = try model.commit(transaction)
    var body: [UInt8] = []
    transaction.appendJournalText(to: &body)
    try journal.append(
      [JournalRecord(revision: commit.revision, milliseconds: 1_700_000_000_000, body: body)], after: base)
  }

  private func read(_ path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: store + "/" + path)))
  }

  /// Starts a copy in which one file is replaced, or, with nil, is missing.
  func start(with path: String? = nil, as content: [UInt8]? = nil) throws -> Outcome {
    try? FileManager.default.removeItem(atPath: store)
    try FileManager.default.createDirectory(atPath: store + "/snapshots", withIntermediateDirectories: true)
    for (name, bytes) in files {
      let bytes = name == path ? content : bytes
      guard let bytes else { continue }
      try Data(bytes).write(to: URL(fileURLWithPath: store + "/" + name))
    }
    do {
      let journal = try SQLiteJournal(directory: store, durability: .synced) {
        JournalIdentity(epoch: "other", schema: Self.yaml)
      }
      defer { journal.close() }
      let schema = try Schema(yaml: journal.identity.schema)
      let recovered = try Recovery(journal, schema: schema, limits: limits).run()
      return outcome(
        recovered.model, epoch: journal.identity.epoch,
        oldest: recovered.history.oldestResumable(at: recovered.model.revision))
    } catch {
      return .refused("\(error)")
    }
  }

  private func outcome(_ model: Model, epoch: String = "k3f9ab", oldest: Revision) -> Outcome {
    var objects: [UInt8] = []
    var encoder = StateEncoder(model.state)
    while let block = encoder.nextBlock() { objects += block }
    return .state(epoch: epoch, revision: model.revision, oldest: oldest, objects: objects)
  }

  /// Returns true if a start may have this outcome: everything, with all of the history, or everything except a last
  /// record that was never acknowledged, or a refusal that names the file.
  func allows(_ outcome: Outcome, whole: Outcome) -> Bool {
    switch outcome {
    // The refusal names the file.
    case .refused(let reason): return reason.contains(store) || reason.contains("snapshot")
    case .state(let epoch, let revision, let oldest, let objects):
      if outcome == whole { return true }
      guard revision >= acknowledged, revision < last, case .state(_, _, let whole, _) = whole else { return false }
      return states[revision] == .state(epoch: epoch, revision: revision, oldest: 0, objects: objects)
        && oldest <= whole
    }
  }
}
