import Dispatch
package import KeyValueModel
import Support

/// Restores a state and its history from a journal: from a snapshot and the transactions since, which are replayed by
/// the code that applied them first.
package struct Recovery {
  /// The result of a recovery.
  package struct Outcome {
    /// The objects and their revision.
    package var model: Model
    /// The most recent commits, for resuming clients.
    package var history: History
    /// Remarks for the operator about snapshots that could not be read.
    package var remarks: [String]
    /// The revision after which commits were replayed.
    package var base: Revision
  }

  private let journal: any TransactionJournal
  private let schema: Schema
  private let limits: StoreLimits
  private let report: (RecoveryProgress) -> Void
  private let restore: ([StoredAttachment]) -> Void
  private var progress = RecoveryProgress()
  private var remarks: [String] = []

  /// The limits of the records read at a time, by number and by bytes: the next records are read while these are
  /// replayed. Replayed records may take 24 times as much memory, and a start has only an eighth of `memory.bytes`
  /// beside its objects.
  private static let chunkRecords = 4096
  private static let chunkBytes = 1024 * 1024

  /// Creates a recovery of a journal whose records were written under `schema`. `report` is called with the progress
  /// now and then. `restore` is called with the attachments of commits, those in the snapshot and those of the replayed
  /// commits, oldest first.
  package init(
    _ journal: any TransactionJournal, schema: Schema, limits: StoreLimits,
    report: @escaping (RecoveryProgress) -> Void = { _ in }, restore: @escaping ([StoredAttachment]) -> Void = { _ in }
  ) {
    self.journal = journal
    self.schema = schema
    self.limits = limits
    self.report = report
    self.restore = restore
  }

  /// Reads everything up to `last`, or up to the end. Throws an error that names the damaged place.
  package consuming func run(through last: Revision? = nil) throws(StoreError) -> Outcome {
    let end = last ?? journal.bounds.last
    var model = try base(for: end)
    let base = model.revision
    var history = History(limits: limits)
    progress.recordsInAll = Int(end - model.revision)
    report(progress)
    // Older commits would be dropped again at once.
    let firstKept = end > Revision(limits.historyRevisions) ? end - Revision(limits.historyRevisions) : 0
    var next = Chunk(of: journal, after: model.revision, through: end)
    while model.revision < end {
      let entries = try next.take()
      guard let newest = entries.last?.revision else {
        throw .replay(revision: model.revision + 1, reason: "it is missing")
      }
      if newest < end { next = Chunk(of: journal, after: newest, through: end) }
      for entry in entries {
        if entry.revision > firstKept {
          let commit = try model.follow(entry.revision) { model throws(ModelError) in
            try model.commit(entry.transaction, at: entry.milliseconds)
          }
          history.append(commit, milliseconds: entry.milliseconds)
        } else {
          try model.follow(entry.revision) { model throws(ModelError) in
            try model.redo(entry.transaction, at: entry.milliseconds)
          }
        }
      }
      let attachments = entries.compactMap(\.attachment)
      if !attachments.isEmpty { restore(attachments) }
      progress.records += entries.count
      Chunk.free(entries)
      report(progress)
    }
    return Outcome(model: model, history: history, remarks: remarks, base: base)
  }

  /// Runs the recovery of a journal whose oldest records other nodes may remove in the meantime: it then starts over
  /// with the remaining ones, up to the number of attempts.
  func run(attempts: Int) throws(StoreError) -> Outcome {
    for _ in 1..<attempts {
      do throws(StoreError) {
        return try run()
      } catch {
        guard case .journal(.compacted) = error else { throw error }
      }
    }
    return try run()
  }

  // MARK: The snapshot

  /// Returns the snapshot from which the whole history up to `end` can be replayed; nil if that begins with the empty
  /// store, or if there is none.
  package static func base(
    of journal: any TransactionJournal, through end: Revision, _ limits: StoreLimits
  ) throws(StoreError) -> JournalSnapshot? {
    try bases(of: journal, through: end, limits).first
  }

  /// Returns the snapshots to begin with, best first: the newest from which the whole history can be replayed comes
  /// first, and those that are too new come last.
  private static func bases(
    of journal: any TransactionJournal, through end: Revision, _ limits: StoreLimits
  ) throws(StoreError) -> [JournalSnapshot] {
    let snapshots = try StoreError.of { () throws(JournalError) in try journal.snapshots() }.filter {
      $0.revision <= end
    }
    let wanted = end > Revision(limits.historyRevisions) ? end - Revision(limits.historyRevisions) : 0
    let old = snapshots.filter { $0.revision <= wanted }
    return journal.bounds.base == 0 ? old : old + snapshots.filter { $0.revision > wanted }.reversed()
  }

  /// Returns the state to begin with.
  private mutating func base(for end: Revision) throws(StoreError) -> Model {
    let bounds = journal.bounds
    for snapshot in try Self.bases(of: journal, through: end, limits) {
      do {
        return try read(snapshot)
      } catch {
        remarks.append("the snapshot of revision \(snapshot.revision) cannot be used: \(error)")
        progress.objects = 0
      }
    }
    guard bounds.base == 0 else {
      let reason = remarks.last ?? "there is none"
      throw .journal(.damaged(place: "snapshots", reason: "no snapshot from revision \(bounds.base) on: \(reason)"))
    }
    return Model(schema: schema)
  }

  private mutating func read(_ snapshot: JournalSnapshot) throws -> Model {
    var decoder = SnapshotDecoder(schema: schema)
    try journal.readSnapshot(snapshot) { block in
      try decoder.decode(block)
      progress.objects = decoder.count
      report(progress)
    }
    let kept = decoder.kept
    let state = try decoder.finish()
    if !kept.isEmpty { restore(kept) }
    progress.objects = state.count
    report(progress)
    return Model(state: state, revision: snapshot.revision)
  }
}

extension Recovery {
  /// Records that are read and decoded on another thread, and freed there, since that is as much work as replaying
  /// them.
  private struct Chunk {
    /// The decoded contents of a record.
    struct Entry {
      let revision: Revision
      let milliseconds: Int64
      let transaction: Transaction
      let attachment: StoredAttachment?
    }

    private let group = DispatchGroup()
    private let outcome = Locked<Result<[Entry], StoreError>>(.success([]))
    private static let queue = DispatchQueue.global(qos: .userInitiated)

    init(of journal: any TransactionJournal, after revision: Revision, through last: Revision) {
      let outcome = outcome
      Self.queue.async(group: group) {
        let result = Result { () throws(StoreError) in try Self.read(journal, after: revision, through: last) }
        outcome.withLock { $0 = result }
      }
    }

    /// Waits for the records and moves them to the caller.
    func take() throws(StoreError) -> [Entry] {
      group.wait()
      return try outcome.withLock { outcome in
        defer { outcome = .success([]) }
        return outcome
      }.get()
    }

    /// Frees records that are no longer needed, on another thread.
    static func free(_ entries: consuming [Entry]) {
      queue.async { [entries] in withExtendedLifetime(entries) {} }
    }

    private static func read(
      _ journal: any TransactionJournal, after revision: Revision, through last: Revision
    ) throws(StoreError) -> [Entry] {
      let records = try StoreError.of { () throws(JournalError) in
        try journal.records(after: revision, limit: chunkRecords, bytes: chunkBytes, waiting: .zero)
      }
      var entries: [Entry] = []
      entries.reserveCapacity(records.count)
      for record in records where record.revision <= last {
        let attachment = record.attachment.map {
          StoredAttachment(revision: record.revision, milliseconds: record.milliseconds, bytes: $0)
        }
        entries.append(
          Entry(
            revision: record.revision, milliseconds: record.milliseconds, transaction: try record.decoded(),
            attachment: attachment))
      }
      return entries
    }
  }
}

/// The progress of a store in reading its journal.
package struct RecoveryProgress: Hashable, Sendable, CustomStringConvertible {
  /// The number of objects read from the snapshot.
  package var objects = 0
  /// The number of records replayed.
  package var records = 0
  /// The total number of records to replay; 0 while it is unknown.
  package var recordsInAll = 0

  /// Creates a progress of nothing.
  package init() {}

  /// The progress as text, for logs and for an operator who waits.
  package var description: String {
    guard recordsInAll > 0 else { return "\(objects) objects read" }
    return "\(objects) objects read, \(records) of \(recordsInAll) records replayed"
  }
}
