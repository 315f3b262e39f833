package import KeyValueModel

/// Makes a store's files as small as they can be, while no server runs.
package struct StoreCompaction: Sendable {
  /// Where the records begin now.
  package let base: Revision
  /// How far they reach.
  package let last: Revision
  /// The objects at the last revision.
  package let objects: Int

  /// Writes down the state with which the records that are kept begin, and has the journal forget what comes before:
  /// with `keepsHistory` what no resuming client needs by `limits`, otherwise everything. `milliseconds` is the time,
  /// since 1970.
  package static func run(
    _ journal: SQLiteJournal, keepsHistory: Bool, limits: StoreLimits, milliseconds: Int64
  ) throws(StoreError) -> StoreCompaction {
    let schema = try Schema(stored: journal.identity)
    var kept: [StoredAttachment] = []
    var outcome = try Recovery(journal, schema: schema, limits: limits, restore: { kept += $0 }).run()
    let last = outcome.model.revision
    let objects = outcome.model.state.count
    outcome.history.trim(at: milliseconds)
    let base = keepsHistory ? outcome.history.oldestResumable(at: last) : last
    if base > journal.bounds.base {
      let state: ModelState
      if base == last {
        state = outcome.model.state
      } else {
        state = try Recovery(journal, schema: schema, limits: .withoutHistory).run(through: base).model.state
      }
      try StoreError.of { () throws(JournalError) in
        var encoder = SnapshotEncoder(state, keeping: { kept.filter { $0.revision <= base } })
        try journal.writeSnapshot(at: base, milliseconds: milliseconds) { encoder.nextBlock() }
        try journal.compact(upTo: base)
      }
    }
    try StoreError.of { () throws(JournalError) in try journal.shrink() }
    return StoreCompaction(base: journal.bounds.base, last: last, objects: objects)
  }
}
